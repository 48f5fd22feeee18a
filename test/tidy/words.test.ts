/** Content that no file may have: one machine's paths, a registry's address, a test that silences the others. */
import { describe, expect, it } from "vitest";
import { type SourceText, allFiles } from "./tree.js";

// Written so that this file doesn't match itself.
const WORDS: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["a path on somebody's machine", /(?<![\w.~}-])\/(?:work|home|root|Users|private)\/\w/],
  ["a path outside of the repository", /\.\.\/share[d]\b/],
  ["a registry's address", /\bregistry\.(?:npmjs|yarnpkg)\b|\/\/(?:npm|registry|artifactory|nexus|verdaccio)\.[\w.-]+|_authToke[n]/],
  ["a test that silences the others", /\b(?:it|test|describe)(?:\.\w+)*\.only\b/],
  ["a disabled rule that doesn't say why", /eslint-disabl[e](?!.* -- \w)/],
];

function found({ path, text }: SourceText): readonly string[] {
  const lines = text.split("\n").entries();
  return [...lines].flatMap(([index, line]) =>
    WORDS.filter(([, pattern]) => pattern.test(line)).map(([what]) => `${path}:${index + 1} has ${what}: ${line.trim().slice(0, 100)}`),
  );
}

describe("words", () => {
  it("that no file carries", () => {
    expect(allFiles().flatMap(found)).toEqual([]);
  });

  it.each([
    ["read /work", "/main/lib"],
    [`open("/home`, `/me/file")`],
    ["see ..", "/shared/API.md"],
    ["https://registry", ".npmjs.org/valibot"],
    ["it", ".only(`waits`, run)"],
    ["describe.concurrent", ".only(`waits`, run)"],
    ["// eslint", "-disable-next-line no-var"],
  ])("control: %s%s is reported", (start, end) => {
    expect(found({ path: "a.ts", text: start + end })).toHaveLength(1);
  });
});
