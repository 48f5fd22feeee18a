/** Releases: published by a workflow that others can check, from pinned actions, after everything has passed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type SourceText, allFiles, ROOT } from "./tree.js";

const WORKFLOWS = allFiles().filter(({ path }) => path.startsWith(".github/workflows/"));
const RELEASE = WORKFLOWS.find(({ path }) => path.endsWith("/release.yml"))?.text ?? "";
const { publishConfig, files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<string, unknown>;

/** The actions that are named by a tag or a branch, which can be moved. */
function movable({ path, text }: SourceText): readonly string[] {
  const used = [...text.matchAll(/\buses: *(\S+)(.*)/g)];
  return used
    .filter(([, action = "", note = ""]) => !(/@[0-9a-f]{40}$/.test(action) && /# v\d/.test(note)))
    .map(([line]) => `${path}: ${line}`);
}

/** The part of a workflow that describes one job. */
function job(name: string): string {
  return RELEASE.split(/^  (?=\w+:$)/m).find((part) => part.startsWith(`${name}:`)) ?? "";
}

describe("a release", () => {
  it("publishes with provenance, and without a stored token", () => {
    expect(publishConfig).toEqual({ access: "public", provenance: true });
    expect(job("publish")).toContain("run: npm publish --provenance");
    expect(RELEASE).not.toMatch(/secrets\.|TOKEN/);
  });

  it("contains what was built, the skill for agents and the changelog, and nothing else", () => {
    expect(files).toEqual(["dist", "docs/skill", "CHANGELOG.md"]);
  });

  it("comes after every check, and only the job that publishes may sign", () => {
    expect(job("check")).toContain("run: .ci/run");
    expect(job("publish")).toContain("needs: check");
    expect(RELEASE.match(/id-token: write/g)).toHaveLength(1);
    expect(job("publish")).toContain("id-token: write");
    expect(RELEASE).toMatch(/^permissions:\n {2}contents: read\n\w/m);
  });

  it("uses actions by their commits", () => {
    expect(WORKFLOWS.length).toBeGreaterThan(0);
    expect(WORKFLOWS.flatMap(movable)).toEqual([]);
  });
});
