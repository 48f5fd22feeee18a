/** README.md's claims about these tests match them: the list of what only a deployment can show, the variables, the sources. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { callsOf } from "./calls.js";
import { deployedFrom, lackOf } from "./deployed.js";
import { declareDeployed } from "./only-deployed.js";
import { listed } from "./suite.js";
import { AT_ONCE } from "./target.js";

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8");
const README = read("README.md");
const unreachable = (): never => expect.unreachable();

describe("test/e2e/README.md", () => {
  it("lists what only a deployment can show, test by test", () => {
    const tests = listed((suite) => declareDeployed(suite, callsOf(unreachable), unreachable));
    const items = [...README.matchAll(/^- \*\*(.+?)\*\*/gm)].map(([, name]) => name);
    expect(items).toEqual(tests.map(({ name }) => name.replace(" > ", " ")));
  });

  it("names every variable that is read, and no other", () => {
    const code = read("deployed.ts");
    const whose = [...code.matchAll(/(credentials|token)From\(env, "(\w+)"\)/g)].map(
      ([, how, who]) => `HOLDFAST_E2E_${who}_${how === "token" ? "TOKEN" : "ACCESS_KEY_ID"}`,
    );
    const others = [...code.matchAll(/(?:env\[|From\(env, )"(HOLDFAST_\w+)"/g)].map(([, name]) => name);
    const told = [...README.matchAll(/\bHOLDFAST_(?:URL|E2E_[A-Z_]+)\b/g)].map(([name]) => name);
    expect(new Set(told)).toEqual(new Set([...whose, ...others]));
    expect(README).toContain(`at most ${AT_ONCE} at once`);
  });

  it("needs nothing but the URL; a variable that is wrong is named", () => {
    expect(deployedFrom({})).toBeUndefined();
    const deployed = deployedFrom({ HOLDFAST_URL: "https://abc.example.com/" })!;
    expect(deployed.url).toBe("https://abc.example.com");
    expect(lackOf(deployed, "client")).toBe("needs HOLDFAST_E2E_CLIENT_ACCESS_KEY_ID");
    const env = { HOLDFAST_URL: "https://abc.example.com", HOLDFAST_E2E_SECOND_ACCESS_KEY_ID: "AKID" };
    expect(() => deployedFrom(env)).toThrow("HOLDFAST_E2E_SECOND_SECRET_ACCESS_KEY is not set");
    expect(deployedFrom({ ...env, HOLDFAST_E2E_SECOND_TOKEN: "a.b.c" })?.second).toEqual({ token: "a.b.c" });
    expect(() => deployedFrom({ ...env, HOLDFAST_E2E_SECOND_SECRET_ACCESS_KEY: "s", HOLDFAST_E2E_BURST: "many" })).toThrow(
      "HOLDFAST_E2E_BURST",
    );
  });
});
