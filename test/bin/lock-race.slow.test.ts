/** `holdfast lock` in several processes at once: their commands never run together, but where they share the key. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endAll, run } from "./holdfast.js";
import { type Service, serve } from "./service.js";

let service: Service;
let directory: string;

beforeAll(async () => {
  service = await serve();
  directory = await mkdtemp(join(tmpdir(), "holdfast-"));
});
afterAll(async () => {
  await endAll();
  await service.close();
  await rm(directory, { recursive: true });
});

const lock = (key: string, ...rest: readonly string[]) => run(["lock", key, ...rest], service.env);

/** Enters, stays until another process is inside too or a second has passed, and leaves. */
const MEET = `
  echo in >> "$1"
  tries=0
  until [ $(grep -c in "$1") -ge $(($(grep -c out "$1") + 2)) ] || [ $tries -ge 10 ]; do tries=$((tries + 1)); sleep 0.1; done
  echo out >> "$1"`;

/** Returns the largest number of processes that held the lock at once. */
async function mostAtOnce(file: string): Promise<number> {
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  const inside = lines.map((_, at) => lines.slice(0, at + 1).reduce((sum, line) => sum + (line === "in" ? 1 : -1), 0));
  expect(lines.filter((line) => line === "in")).toHaveLength(3);
  return Math.max(...inside);
}

describe("processes that lock the same key", () => {
  const meet = (file: string, ...how: readonly string[]) =>
    Promise.all([1, 2, 3].map(() => lock(...(how as [string]), "--", "sh", "-c", MEET, "sh", file)));

  it("never run their commands at the same time", async () => {
    const file = join(directory, "locked");
    expect((await meet(file, "one")).map(({ status, stderr }) => ({ status, stderr }))).toEqual(Array(3).fill({ status: 0, stderr: "" }));
    expect(await mostAtOnce(file)).toBe(1);
  });

  it("control: of another key each, they do", async () => {
    const file = join(directory, "unlocked");
    await Promise.all(["a", "b", "c"].map((key) => lock(key, "--", "sh", "-c", MEET, "sh", file)));
    expect(await mostAtOnce(file)).toBeGreaterThan(1);
  });

  it("do when they share it, or take a permit each", async () => {
    const [shared, permits] = [join(directory, "shared"), join(directory, "permits")];
    await meet(shared, "shared", "--shared");
    expect(await mostAtOnce(shared)).toBeGreaterThan(1);
    await meet(permits, "permits", "--limit", "2");
    expect(await mostAtOnce(permits)).toBe(2);
  });
});
