/** The order service for readers: the claims of its README, and the output of its scene. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, inject, it } from "vitest";
import { BUYER } from "../../examples/orders/buyer.js";
import { SELLER } from "../../examples/orders/seller.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import { ROOT } from "../tidy/tree.js";

const DIRECTORY = join(ROOT, "examples/orders");

const text = (file: string): string => readFileSync(join(DIRECTORY, file), "utf8");
/** The cells of the rows with a route in the second column. */
const rows = text("README.md")
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter(([, , route = ""]) => /^`[A-Z]+ \//.test(route))
  .map(([, operation = "", route = "", who = "", takes = "", why = ""]) => ({ operation, route: route.slice(1, -1), who, takes, why }));

/** The code that serves a route: the constant named in the table of routes. */
function codeOf(file: string, routeKey: string): string {
  const source = text(file);
  const name = source.split(`"${routeKey}": `)[1]!.split(",")[0]!;
  return source.split(`const ${name}: Operation`)[1]!.split("\n/** ")[0]!;
}

describe("the README of the order service", () => {
  it("has a row for each of the fifteen operations, with its route and its side", () => {
    const routes = { buyer: Object.keys(BUYER), seller: Object.keys(SELLER) };
    expect(rows).toHaveLength(15);
    for (const who of ["buyer", "seller"] as const) {
      expect(rows.filter((row) => row.who === who).map(({ route }) => route)).toEqual(routes[who]);
    }
  });

  it.each(rows)("says what $operation, of the $who, takes, as its code does", ({ route, who, takes }) => {
    const code = codeOf(`${who}.ts`, route);
    const taken = [
      /\bonce\(/.test(code) && "run once",
      /\bmove\(/.test(code) && "lock `ORDER_<id>`",
      /\borders\.(?:place|review)\(/.test(code) && "conditional write",
    ].filter((one) => one !== false);
    expect(takes.split(/, (?:in it )?/)).toEqual(taken.length > 0 ? taken : ["nothing"]);
  });

  it("has a row for each file", () => {
    const files = [...text("README.md").matchAll(/^\| `([\w-]+\.ts)` /gm)].map(([, file]) => file);
    expect(files.toSorted()).toEqual(
      readdirSync(DIRECTORY)
        .filter((file) => file.endsWith(".ts"))
        .toSorted(),
    );
  });

  it("quotes code that is there", () => {
    for (const [, code = ""] of text("README.md").matchAll(/```ts\n([^]*?)```/g)) expect(text("move.ts")).toContain(code.trim());
  });
});

describe("the scene", () => {
  it("shows one order, and one of three who gets it; nothing of its own stays behind", async () => {
    const proxy = await startFaultProxy(inject("engineEndpoint"));
    const env = { ...process.env, DYNAMODB_ENDPOINT: proxy.endpoint };
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--import", "tsx", join(DIRECTORY, "scene.ts")], {
      cwd: ROOT,
      env,
    });
    expect(stderr).toBe("");
    expect(stdout).toMatch(
      /^the form is sent three times: 1 order, 8 cameras left\npaid: PAID\nrefund: ASKED\n(?:\w+: (?:200|409) .*\n){3}it is /,
    );
    expect(stdout).toMatch(/it is (?:CANCELLED|REFUNDED); moved 9800, -9800; (?:pickups 0; cameras 10|pickups 1; cameras 8)\n$/);
    expect(proxy.ledger.requests).toMatchObject({ CreateTable: 2, DeleteTable: 2 });
    await proxy.close();
  });
});
