/** The skill for coding agents: the calls that it names exist, and its two headers are there. */
import { describe, expect, it } from "vitest";
import { createLockClient } from "../../lib/testing.js";
import { readPage } from "./generated.js";

const PAGE = readPage("docs/skill/SKILL.md");

describe("the skill for coding agents", () => {
  it("has a name, and a description that says when to use it", () => {
    expect(PAGE).toMatch(/^---\nname: holdfast\ndescription: .{50,}\n---\n/);
  });

  it("names calls that the client has", () => {
    const locks = createLockClient();
    const named = [...new Set([...PAGE.matchAll(/\blocks\.(\w+)\(/g)].map(([, call = ""]) => call))];
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((call) => typeof Reflect.get(locks, call) !== "function")).toEqual([]);
  });
});
