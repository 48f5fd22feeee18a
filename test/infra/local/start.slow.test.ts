/** `npm start` for a user: its output, proof that the printed commands work, and its exit. */
import { type ChildProcessByStdio, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createLockClient } from "../../../lib/index.js";
import { afterEach, describe, expect, inject, it } from "vitest";

const START = fileURLToPath(new URL("../../../infra/local/start.ts", import.meta.url));
const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const HAS_CURL = spawnSync("curl", ["--version"]).status === 0;
const run = promisify(execFile);

type Running = ChildProcessByStdio<null, Readable, Readable>;

const running = new Set<Running>();
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});

/** Starts it with an environment that contains nothing but this. */
function start(env: Readonly<Record<string, string>>): Running {
  const inherited = Object.fromEntries(["PATH", "HOME", "TMPDIR"].map((name) => [name, process.env[name]]));
  const child = spawn(process.execPath, ["--import", "tsx", START], {
    cwd: ROOT,
    env: { ...inherited, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  return child;
}

/** Returns the output up to the point where it serves. */
async function greeting(child: Running): Promise<string> {
  let printed = "";
  for await (const chunk of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    printed += String(chunk);
    if (printed.includes("Ctrl-C")) return printed;
  }
  throw new Error(`It ended: ${printed} ${await text(child.stderr)}`);
}

/** Waits for the end and returns the exit code and stderr. */
async function ended(child: Running) {
  const [[code], stderr] = await Promise.all([once(child, "exit"), text(child.stderr)]);
  return { code: code as number | null, stderr };
}

describe("npm start", () => {
  it.each([
    ["the embedded engine", {}],
    ["memory", { HOLDFAST_ENGINE: "memory" }],
    ["a table like DynamoDB's", { HOLDFAST_ENGINE: "like-dynamodb" }],
    ["an engine of one's own", { DYNAMODB_ENDPOINT: inject("engineEndpoint") }],
  ])("serves on %s, and says so", async (what, env) => {
    const child = start({ PORT: "0", ...env });
    const printed = await greeting(child);
    const [, url] = /^holdfast \S+ serves (http:\/\/127\.0\.0\.1:[1-9]\d*)$/m.exec(printed) ?? [];
    const [, engine] = /^engine: (.*)$/m.exec(printed) ?? [];
    expect(printed).toMatch(/^namespace: default$/m);
    expect(engine).toMatch(
      {
        memory: /^memory$/,
        "a table like DynamoDB's": /^memory, with DynamoDB's latency/,
        "the embedded engine": /^(dynoxide|dynamodb-local|memory)/,
      }[what] ?? /^your own DynamoDB at http/,
    );
    expect((await fetch(`${url}/v1/health?deep=1`)).status).toBe(200);
    expect((await fetch(`${url}/v1/nothing`)).headers.get("content-type")).toBe("application/problem+json");
  });

  it("logs an owner without what a terminal obeys", async () => {
    const child = start({ PORT: "0", HOLDFAST_ENGINE: "memory" });
    const [, url = ""] = / serves (\S+)$/m.exec(await greeting(child)) ?? [];
    const owner = "a\u009B31m\u007F\u2028b";
    await using _lease = await createLockClient({ url }).acquire("logged", { owner });
    for await (const chunk of child.stdout) {
      const line = String(chunk).trim();
      if (!line.startsWith("{")) continue;
      expect(line).toContain(String.raw`a\u009b31m\u007f\u2028b`);
      expect(JSON.parse(line)).toMatchObject({ event: "granted", owner });
      break;
    }
  });

  it.runIf(HAS_CURL)("prints three curl lines that work as they are", async () => {
    const child = start({ PORT: "0", AWS_PROFILE: "of-the-developer" });
    const lines = (await greeting(child)).split("\n").filter((line) => line.trim().startsWith("curl "));
    expect(lines).toHaveLength(3);
    const replies: string[] = [];
    for (const line of lines) replies.push((await run("sh", ["-c", line])).stdout);
    const [acquired, inspected, released] = replies;
    expect(acquired).toMatch(/^HTTP\/1.1 201 [\s\S]*"fencingToken":/);
    expect(inspected).toMatch(/^HTTP\/1.1 200 [\s\S]*"holders":\[\{"owner":"me"/);
    expect(released).toMatch(/^HTTP\/1.1 204 [\s\S]*lease-state: released/i);
  });

  it.each(["SIGINT", "SIGTERM"] as const)("ends by %s with its engine, with exit code 0 and not a word", async (signal) => {
    const child = start({ PORT: "0" });
    const printed = await greeting(child);
    const addresses = [...printed.matchAll(/(?:serves|at) (http:\/\/[\d.:]+)/g)].map(([, url]) => url!);
    const end = ended(child);
    child.kill(signal);
    child.kill(signal); // As under npm: the signal comes from the terminal and from npm.
    expect(await end).toEqual({ code: 0, stderr: "" });
    for (const url of addresses) await expect(fetch(url)).rejects.toThrow("fetch failed");
  });

  it("ends with the npm that started it", async () => {
    const npm = spawn("sh", ["-c", '"$@" & cat', "npm", process.execPath, "--import", "tsx", START], {
      cwd: ROOT,
      env: { ...process.env, PORT: "0", HOLDFAST_ENGINE: "memory", npm_lifecycle_event: "start" },
      stdio: ["pipe", "pipe", "inherit"],
    });
    let printed = "";
    for await (const chunk of npm.stdout.setEncoding("utf8")) {
      printed += String(chunk);
      if (printed.includes("Ctrl-C")) npm.kill("SIGKILL"); // The output ends when the service has exited, too.
    }
    const [, url = ""] = /serves (\S+)/.exec(printed) ?? [];
    await expect(fetch(url)).rejects.toThrow("fetch failed");
  });
});

describe("what keeps it from starting", () => {
  it("is told when the port is in use", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const { code, stderr } = await ended(start({ PORT: String(port) }));
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `holdfast: Port ${port} is in use: set PORT to another, or PORT=0 for any free one\n`,
    });
    taken.close();
  });

  it.each([
    [{ DYNAMODB_ENDPOINT: "http://127.0.0.1:1" }, "No DynamoDB answers at DYNAMODB_ENDPOINT http://127.0.0.1:1: nothing listens there"],
    [{ DYNAMODB_ENDPOINT: "dynamo" }, "DYNAMODB_ENDPOINT is not a URL: dynamo (it should look like http://127.0.0.1:8000)"],
    [
      { HOLDFAST_ENGINE: "postgres" },
      "HOLDFAST_ENGINE=postgres is not an engine: it may be dynoxide, dynamodb-local, memory, like-dynamodb",
    ],
    [{ HOLDFAST_ENGINE: "dynamodb-local", PATH: "" }, "AWS's DynamoDB Local needs Java, and there is none on the path"],
    [
      { HOLDFAST_ENGINE: "memory", HOLDFAST_ALLOWED_HOSTS: "box.test,http://a" },
      "HOLDFAST_ALLOWED_HOSTS=http://a is not a host name: give it without scheme and port",
    ],
    [{ PORT: "http" }, "PORT=http is not a port: it may be 0 (any free one) to 65535"],
    [{ HOLDFAST_ENGINE: "memory", HOLDFAST_RETENTION_MS: "long" }, 'HOLDFAST_RETENTION_MS: "long" is not a number'],
  ])("is told in one line: %j", async (env, line) => {
    expect(await ended(start({ PORT: "0", ...env }))).toEqual({ code: 1, stderr: `holdfast: ${line}\n` });
  });
});
