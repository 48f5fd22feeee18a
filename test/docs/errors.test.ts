/**
 * "Errors": the page's parts match the registry and the client. To accept a change, read the difference and run:
 *
 *     npx vitest run test/docs/errors -u
 */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ERRORS } from "../../lib/core/errors.js";
import { createLockClient } from "../../lib/testing.js";
import { ROOT } from "../tidy/tree.js";
import { clientCodes, errorParts } from "./error-pages.js";
import { readPage, withParts } from "./generated.js";

const PATH = "docs/errors.md";
const PAGE = readPage(PATH);

describe("the page of errors", () => {
  it("has its parts as the code makes them", async () => {
    const how = "the errors changed: review it, then run npx vitest run test/docs/errors -u";
    await expect(await withParts(PAGE, errorParts()), how).toMatchFileSnapshot(join(ROOT, PATH));
  });

  it("has a heading to link to for every code, of the service and of the client", () => {
    const codes = [...Object.keys(ERRORS), ...clientCodes().map(({ code }) => code)];
    expect(codes.filter((code) => !readPage(PATH).includes(`\n### ${code}\n`))).toEqual([]);
    expect(clientCodes().map(({ code }) => code)).toEqual(["closed", "invocation-ends", "result-omitted", "run-failed", "wait-timeout"]);
  });

  it("control: another status, word or missing code is another page", async () => {
    const parts = errorParts();
    const [name, made] = Object.entries(parts)[0]!;
    for (const changed of [made.replace("423", "424"), made.replace("`later`", "`same`"), made.slice(0, made.lastIndexOf("\n###"))]) {
      expect(changed).not.toBe(made);
      expect(await withParts(PAGE, { ...parts, [name]: changed })).not.toBe(PAGE);
    }
  });
});

describe("what the page says of the client's own codes", () => {
  it("is what it throws", async () => {
    const locks = createLockClient();
    const rows = new Map(
      clientCodes().map(({ code, definite, retry, type }) => [code, { code, definite: definite === "true", retry, name: type }]),
    );
    await locks.acquire("held");
    await expect(locks.acquire("held", { waitMs: 0 })).rejects.toMatchObject(rows.get("wait-timeout")!);
    await locks.close();
    await expect(locks.acquire("free")).rejects.toMatchObject(rows.get("closed")!);
  });
});
