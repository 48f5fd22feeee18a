/** Engines: the choice of the engine, a check that it answers, and proof that it never outlives its parent process. */
import { DescribeTableCommand, DescribeTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, inject, it } from "vitest";
import { createTable } from "../../../infra/local/create-table.js";
import { engineClient } from "../../../infra/local/engine-client.js";
import { startProcess } from "../../../infra/local/engine-process.js";
import { startEngine } from "../../../infra/local/engine.js";
import { StartError } from "../../../infra/local/start-error.js";

const HAS_DYNOXIDE = process.platform === "linux" && process.arch === "x64";
const ENGINE_MODULE = new URL("../../../infra/local/engine.ts", import.meta.url).href;

describe.runIf(HAS_DYNOXIDE)("an embedded engine", () => {
  it("serves a table as the stack defines it, and creating it again changes nothing", async () => {
    const engine = await startEngine({ kind: "dynoxide" });
    const client = engineClient(engine.endpoint);
    await createTable(client, "locks");
    await createTable(client, "locks");
    const { Table } = await client.send(new DescribeTableCommand({ TableName: "locks" }));
    expect(Table?.KeySchema).toEqual([
      { AttributeName: "p", KeyType: "HASH" },
      { AttributeName: "k", KeyType: "RANGE" },
    ]);
    expect(Table?.BillingModeSummary?.BillingMode).toBe("PAY_PER_REQUEST");
    const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName: "locks" }));
    expect(TimeToLiveDescription).toMatchObject({ AttributeName: "x", TimeToLiveStatus: "ENABLED" });
    await engine.stop();
  });

  it("that has a data file finds its table again after it was killed", async () => {
    const directory = await mkdtemp(join(tmpdir(), "holdfast-engine-"));
    const choice = { kind: "dynoxide", dataFile: join(directory, "data.db") } as const;
    const { endpoint, groupId, stop } = await startEngine(choice);
    await createTable(engineClient(endpoint), "locks");
    process.kill(-groupId!, "SIGKILL");
    await stop();
    const engine = await startEngine(choice);
    const { Table } = await engineClient(engine.endpoint).send(new DescribeTableCommand({ TableName: "locks" }));
    expect(Table?.TableStatus).toBe("ACTIVE");
    await engine.stop();
    await rm(directory, { recursive: true });
  });

  it("is gone once it is stopped, and stopping it again is no error", async () => {
    const { endpoint, groupId, stop } = await startEngine({ kind: "dynoxide" });
    expect(living(groupId!)).not.toEqual([]);
    await stop();
    await stop();
    expect([living(groupId!), await answers(endpoint)]).toEqual([[], false]);
  });

  it.each(["SIGKILL", "SIGTERM"] as const)("ends with the process that started it, when that ends by %s", async (signal) => {
    const parent = parentOfAnEngine("await new Promise(() => setInterval(() => undefined, 60_000))");
    const { endpoint, groupId } = await parent.engine;
    expect(living(groupId)).not.toEqual([]);
    expect(await answers(endpoint)).toBe(true);
    parent.child.kill(signal);
    await once(parent.child, "exit");
    await until(() => living(groupId).length === 0);
    expect(await answers(endpoint)).toBe(false);
  });

  it("lets a process end that forgot to stop it, and ends too", async () => {
    const parent = parentOfAnEngine("");
    const [code] = await once(parent.child, "exit");
    expect(code).toBe(0);
    const { groupId } = await parent.engine;
    await until(() => living(groupId).length === 0);
  });

  it("ends with a whole group that is killed, as runners of tests do", async () => {
    const parent = parentOfAnEngine("await new Promise(() => setInterval(() => undefined, 60_000))", { detached: true });
    const { groupId } = await parent.engine;
    process.kill(-parent.child.pid!, "SIGKILL");
    await once(parent.child, "exit");
    await until(() => living(groupId).length === 0);
  });
});

describe("an engine that can't start", () => {
  it("says why in one line", async () => {
    const command = { name: "broken", command: "sh", args: () => ["-c", "echo; echo the disk is full >&2; exit 3"], startMs: 10_000 };
    await expect(startProcess(command)).rejects.toThrow(new StartError("The engine broken could not start: the disk is full"));
  });

  it("is given up when it doesn't answer in time, and ended", async () => {
    const command = { name: "mute", command: "sh", args: () => ["-c", "echo $$ >&2; exec sleep 60"], startMs: 300 };
    const message = await refusalOf(startProcess(command));
    const [, pid] = /^The engine mute did not answer within 0.3 s: (\d+)$/.exec(message) ?? [];
    expect(isAlive(Number(pid))).toBe(false);
  });
});

describe("an external engine", () => {
  it("is used as it is, and left alone in the end", async () => {
    const endpoint = inject("engineEndpoint");
    const engine = await startEngine({ endpoint });
    expect(engine).toMatchObject({ kind: "external", endpoint });
    await engine.stop();
    expect(await answers(endpoint)).toBe(true);
  });

  it.each([
    ["localhost:8000", /^DYNAMODB_ENDPOINT is not a URL: localhost:8000 \(/],
    ["", /^DYNAMODB_ENDPOINT is not a URL/],
    ["http://127.0.0.1:1", /^No DynamoDB answers at DYNAMODB_ENDPOINT http:\/\/127.0.0.1:1: nothing listens there$/],
    ["http://nobody.invalid", /^No DynamoDB answers at DYNAMODB_ENDPOINT http:\/\/nobody.invalid: /],
  ])("at a wrong address %j is told in one line", async (endpoint, message) => {
    const refusal = await refusalOf(startEngine({ endpoint }));
    expect(refusal).toMatch(message);
    expect(refusal).not.toContain("\n");
  });

  it("is not just any server", async () => {
    const server = createServer((_, response) => response.writeHead(200).end("<html>")).listen(0, "127.0.0.1");
    await once(server, "listening");
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(startEngine({ endpoint })).rejects.toThrow(
      /^No DynamoDB answers at DYNAMODB_ENDPOINT .*: what answers there is not DynamoDB/,
    );
    server.close();
  });
});

/** The error message of a failed start. */
async function refusalOf(start: Promise<unknown>): Promise<string> {
  const error = await start.then(
    () => expect.fail("it started"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StartError);
  return (error as StartError).message;
}

/** A process that starts an engine, reports it, and continues with `then`. */
function parentOfAnEngine(then: string, { detached = false } = {}) {
  const script = `
    const { startEngine } = await import(${JSON.stringify(ENGINE_MODULE)});
    console.log(JSON.stringify(await startEngine({ kind: "dynoxide" })));
    ${then}`;
  const args = ["--import", "tsx", "--input-type=module", "--eval", script];
  const child = spawn(process.execPath, args, { detached, stdio: ["ignore", "pipe", "inherit"] });
  const engine = once(child.stdout.setEncoding("utf8"), "data").then(([line]) => JSON.parse(line) as { endpoint: string; groupId: number });
  return { child, engine };
}

/** The running processes of a group, without zombies. */
function living(groupId: number): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const { state, group } = statOf(pid);
      return group === groupId && state !== "Z";
    });
}

function isAlive(pid: number): boolean {
  if (existsSync("/proc/self/stat")) return !["Z", ""].includes(statOf(pid).state);
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function statOf(pid: number): { state: string; group: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state, group: Number(group) };
  } catch {
    return { state: "", group: 0 };
  }
}

async function answers(endpoint: string): Promise<boolean> {
  const { hostname, port } = new URL(endpoint);
  const socket = connect(Number(port), hostname);
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Polls, because the exit of an unrelated process can't be awaited. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(10);
}
