/**
 * The public surface equals the reviewed one: public-surface.txt. A change to it is a decision and belongs in the
 * CHANGELOG. To accept a change, read the difference and run:
 *
 *     npx vitest run test/tidy/public-surface -u
 */
import { expect, it } from "vitest";
import ts from "typescript";
import { DISK, entries, exportsOf, programOf, publicSurface } from "./public-surface.js";

const COMPILE_MS = 60_000;

it("every entry of package.json names a source of lib or lambda, or a construct", () => {
  expect(entries().map(({ name }) => name)).toContain("holdfast");
  for (const { path } of entries()) expect(path).toMatch(/^(?:(?:lib|lambda)\/[\w-]+|infra\/(?:index|step-functions))\.ts$/);
});

it(
  "the public surface is the reviewed one",
  async () => {
    const how = "the public surface changed: review it, then run npx vitest run test/tidy/public-surface -u";
    await expect(publicSurface(), how).toMatchFileSnapshot("public-surface.txt");
  },
  COMPILE_MS,
);

it(
  "control: every kind of export is seen, and nothing private",
  () => {
    const text = `
      export class Lease implements AsyncDisposable {
        readonly key = "";
        #secret = 1;
        private hidden = 1;
        release(): number { return this.#secret + this.hidden; }
        async [Symbol.asyncDispose](): Promise<void> {}
      }
      export class LostError extends Error { readonly code = 1; }
      export interface Held extends AsyncDisposable { readonly key: string }
      export interface Options { leaseMs?: number; owner: string }
      export type State = "held";
      export const limits = {};
      export function key(): void {}
      export { key as keyOf };
      const inner = 1;
      export default inner;`;
    const host: ts.CompilerHost = {
      ...DISK,
      getSourceFile: (path, options) =>
        path === "/a.ts" ? ts.createSourceFile(path, text, options, true) : DISK.getSourceFile(path, options),
      fileExists: (path) => path === "/a.ts" || DISK.fileExists(path),
    };
    expect(exportsOf(programOf(["/a.ts"], host), "/a.ts")).toEqual([
      "  interface Held",
      "    [Symbol.asyncDispose]",
      "    key",
      "  class Lease",
      "    [Symbol.asyncDispose]",
      "    key",
      "    release",
      "  class LostError",
      "    code",
      "  interface Options",
      "    leaseMs?",
      "    owner",
      "  type State",
      "  const default",
      "  function key",
      "  function keyOf",
      "  const limits",
    ]);
  },
  COMPILE_MS,
);
