/** The page on web frameworks: each program on it compiles, serves, makes one order of a repeated request, and ships under a lock. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { PROBLEMS } from "../../lib/adapters/problem.js";
import { ROOT } from "../tidy/tree.js";
import { plainEnvironment } from "./npm-start.js";
import { compile, guide, pasted, workshop } from "./snippets.js";

/** Starting a compiler or a program is slow on a loaded machine. */
const PATIENCE_MS = 180_000;
const PAGE = guide("web-frameworks");
const PROGRAMS = PAGE.blocks("ts").map((program) => ({ name: /"holdfast\/(\w+)"/.exec(program)?.[1] ?? "", program }));
const PORT = "3000";

let directory: string;
let server: ChildProcess | undefined;

beforeAll(async () => {
  directory = await workshop();
});
afterEach(async () => {
  if (!server) return;
  const ended = once(server, "exit");
  server.kill();
  await ended;
  server = undefined;
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  return port;
}

describe("the programs of the page on web frameworks", () => {
  it("are one for each entry", () => {
    expect(PROGRAMS.map(({ name }) => name)).toEqual(["express", "fastify", "hono", "nest"]);
  });

  it.each(PROGRAMS)("$name: compiles; control: without a caller it doesn't", async ({ name, program }) => {
    const options = { experimentalDecorators: name === "nest" };
    const wrong = program.replace(/,\s*caller(?=,?\s*\})/, "");
    expect(wrong).not.toBe(program);
    await writeFile(join(directory, `${name}.mts`), pasted(program));
    await writeFile(join(directory, `${name}-wrong.mts`), pasted(wrong));
    const errors = (await compile(directory, [`${name}.mts`, `${name}-wrong.mts`], options)).match(/^.*error.*$/gm) ?? [];
    expect(errors.join()).toContain("'caller' is missing");
    expect(errors.filter((line) => !line.includes("-wrong.mts"))).toEqual([]);
  });

  it.each(PROGRAMS)("$name: makes one order of a repeated request, and ships", async ({ name, program }) => {
    const port = await freePort();
    expect(program.split(PORT)).toHaveLength(2);
    const tsconfig = join(directory, "tsconfig.json");
    await writeFile(join(directory, `${name}.mts`), pasted(program.replace(PORT, String(port)), { inMemory: true }));
    await writeFile(tsconfig, JSON.stringify({ compilerOptions: { target: "es2022", experimentalDecorators: name === "nest" } }));
    const env = { ...plainEnvironment({}), TSX_TSCONFIG_PATH: tsconfig };
    server = spawn(process.execPath, ["--import", "tsx", join(directory, `${name}.mts`)], {
      cwd: ROOT,
      env,
      stdio: ["ignore", "inherit", "inherit"],
    });

    const post = (path: string, authorization = "Bearer 7f3a"): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}/orders${path}`, { method: "POST", headers: { authorization, "idempotency-key": "form-1" } });
    const first = await vi.waitFor(() => post(""), { timeout: PATIENCE_MS / 2, interval: 200 });
    const [again, other, shipped] = [await post(""), await post("", "Bearer 91c0"), await post("/7/ship")];
    const order: unknown = await first.json();
    expect([first.status, again.status]).toEqual(Array(2).fill(name === "fastify" ? 200 : 201));
    expect(await again.json()).toEqual(order);
    expect([first, again, other].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true", null]);
    expect(await shipped.json()).toEqual({ shipped: "7" });
  });
});

it("the page has every problem, with its status, and when it says to come again", () => {
  const rows = PAGE.text.matchAll(/\| (\d{3}) +\| `([\w-]+)` +\| (yes|) *\|/g);
  const said = [...rows].map(([, status, code, later]) => [code, Number(status), later === "yes"]);
  const isSaid = ({ 0: code }: readonly [string, unknown]): boolean => code !== "attempts-exhausted"; // only with maxAttempts
  expect(said.toSorted()).toEqual(
    Object.entries(PROBLEMS)
      .filter(isSaid)
      .map(([code, { status, retry }]) => [code, status, retry === "later"])
      .toSorted(),
  );
});
