/** The libraries that the benchmarks compare are packages of their own, with exact versions. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
}

const read = (path: string): unknown => JSON.parse(readFileSync(join(ROOT, path), "utf8"));
const { dependencies } = read("bench/peers/package.json") as { readonly dependencies: Readonly<Record<string, string>> };
const versionIn = (lock: string, name: string) => (read(lock) as Lock).packages[`node_modules/${name}`]?.version;

it.each(Object.entries(dependencies))("%s %s is locked, and no installation of the repository brings it", (name, version) => {
  expect(versionIn("bench/peers/package-lock.json", name)).toBe(version);
  expect(versionIn("package-lock.json", name)).toBeUndefined();
});
