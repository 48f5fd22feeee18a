/** Every file has a header comment, every exported function a doc comment, and none only says a name again. */
import { describe, expect, it } from "vitest";
import { hasHeader, repeating, undocumented } from "./comments.js";
import { allFiles, SOURCES, sourcesIn } from "./tree.js";

describe("comments", () => {
  it("head every file", () => {
    const silent = sourcesIn(...SOURCES).filter((source) => !hasHeader(source));
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  it("say more than the name below", () => {
    expect(sourcesIn(...SOURCES).flatMap(repeating)).toEqual([]);
    expect(repeating({ path: "a.ts", text: "/** The answers of a service. */\nexport interface ServiceAnswer {}" })).toHaveLength(1);
  });

  it("stand above every exported function of lib and lambda", () => {
    expect(sourcesIn("lib/", "lambda/").flatMap(undocumented)).toEqual([]);
  });

  it("name only files that there are", () => {
    const paths = allFiles().map(({ path }) => path);
    const named = (text: string): readonly string[] =>
      [...text.matchAll(/(?:^|\n)\s*(?:\/?\*+|\/\/) .*/g)].flatMap(([line]) =>
        [...line.matchAll(/(?<![\w"'`/@.-])(?:\.\/)?((?:[\w-]+\/)*[\w-]+(?:\.test|\.slow\.test)?\.(?:ts|py))\b/g)].map(
          ([, name = ""]) => name,
        ),
      );
    const isThere = (name: string): boolean => paths.some((path) => path === name || path.endsWith(`/${name}`));
    const sources = sourcesIn(...SOURCES);
    const moved = sources.flatMap(({ path, text }) => named(text).flatMap((name) => (isThere(name) ? [] : [`${path}: ${name}`])));
    expect(moved).toEqual([]);
    expect(named("/** As in calls/moved.ts. */")).toEqual(["calls/moved.ts"]);
  });

  it("of the store's predicates name functions that the core has", () => {
    const [predicates] = sourcesIn("lib/store/dynamo/predicates.ts");
    const named = [...(predicates?.text.matchAll(/\/\*\* ([^*]*)\*\//g) ?? [])].flatMap(([, comment = ""]) =>
      [...comment.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name),
    );
    const core = sourcesIn("lib/core/")
      .map(({ text }) => text)
      .join("\n");
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !new RegExp(`\\b(?:function|const) ${name}\\b`).test(core))).toEqual([]);
  });

  it.each([
    ["a function", "export function held(): void {}"],
    ["a function with a plain comment", "// Held.\nexport function held(): void {}"],
    ["a class", "/** Header. */\nimport { a } from './a.js';\nexport class held extends a {}"],
  ])("control: %s without one is reported", (_what, text) => {
    expect(undocumented({ path: "lib/a.ts", text })).toEqual(["lib/a.ts: held"]);
  });
});
