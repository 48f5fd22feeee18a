/**
 * The servers of a contest and the processes of its contestants. A contestant that can't be opened is left out with a
 * remark. Everything ends with the contest.
 */
import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CreateTableCommand } from "@aws-sdk/client-dynamodb";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { type EngineProcess, startProcess } from "../../infra/local/engine-process.js";
import { type Engine, startEngine } from "../../infra/local/engine.js";
import type { Answer, Order, Tasks } from "./contestant-process.js";
import { type Arena, LOCKS_TABLE, ONE_KEY, ONE_KEY_TABLE, PLAIN_TABLE } from "./arena.js";
import { bundleProgram } from "./bundled.js";
import { ENTRIES } from "./contestants.js";
import { INSTALL_PEERS } from "./peers.js";

const SERVICE = fileURLToPath(new URL("../../infra/local/start.ts", import.meta.url));
const START_MS = 30_000;
/** The clock ticks of Linux's /proc, a second. */
const TICKS = 100;

/** The process of a contestant. */
export interface Runner {
  readonly id: string;
  readonly title: string;
  ask<Task extends keyof Tasks>(task: Task, ...given: Parameters<Tasks[Task]>): ReturnType<Tasks[Task]>;
  /** Ends the process at once. Its tasks fail. */
  kill(): void;
}

/** Running servers, and the contestants that could be opened. */
export interface Contest {
  /** The DynamoDB engine. */
  readonly endpoint: string;
  /** The lock service. */
  readonly url: string;
  readonly runners: readonly Runner[];
  /** The contestants that are left out, and why. */
  readonly notes: string[];
  /** Starts another process of a contestant. */
  another(id: string): Promise<Runner>;
  /** The CPU that the lock service has used, in ms; undefined if the system doesn't tell. */
  serviceCpuMs(): number | undefined;
  stop(): Promise<void>;
}

/** Starts a contest of the contestants that match. @throws StartError if the engine or the service can't start. */
export async function startContest(pollMs: number, matches: (id: string) => boolean): Promise<Contest> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-contest-"));
  const engine = await startEngine({});
  const servers: EngineProcess[] = [];
  const runners: Runner[] = [];
  const stop = async (): Promise<void> => {
    for (const runner of runners) runner.kill();
    for (const server of servers) await server.stop();
    await engine.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const program = await bundleProgram("contestant-process.ts", directory);
    await createTables(engine);
    const service = await startProcess(serviceOn(engine));
    servers.push(service);
    const redis = await startRedis();
    if (redis) servers.push(redis);
    const arena: Arena = {
      endpoint: engine.endpoint,
      url: `http://127.0.0.1:${service.port}`,
      ...(redis && { redisPort: redis.port }),
      pollMs,
    };
    const another = async (id: string): Promise<Runner> => {
      const runner = await startRunner(program, id, arena);
      runners.push(runner);
      return runner;
    };
    const asked = Object.keys(ENTRIES).filter(matches);
    const missing = asked.filter((id) => ENTRIES[id]!.isInstalled?.() === false);
    const notes = missing.length > 0 ? [missingNote(missing)] : [];
    for (const id of asked.filter((one) => !missing.includes(one))) {
      await another(id).catch((error: unknown) => notes.push(`Not run: ${ENTRIES[id]!.title}: ${(error as Error).message}.`));
    }
    return {
      endpoint: engine.endpoint,
      url: arena.url,
      runners: [...runners],
      notes,
      another,
      serviceCpuMs: () => cpuMsOf(service.groupId),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function missingNote(ids: readonly string[]): string {
  return `Not run, because \`${INSTALL_PEERS}\` has not installed them: ${ids.map((id) => ENTRIES[id]!.title).join("; ")}.`;
}

async function createTables({ endpoint }: Engine): Promise<void> {
  const client = engineClient(endpoint);
  for (const name of [LOCKS_TABLE, PLAIN_TABLE]) await createTable(client, name);
  await client.send(
    new CreateTableCommand({
      TableName: ONE_KEY_TABLE,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: ONE_KEY, AttributeType: "S" }],
      KeySchema: [{ AttributeName: ONE_KEY, KeyType: "HASH" }],
    }),
  );
  client.destroy();
}

/** The service as `npm start` runs it: behind the local gateway, on the same engine. */
function serviceOn({ endpoint }: Engine): Parameters<typeof startProcess>[0] {
  const variables = [`DYNAMODB_ENDPOINT=${endpoint}`, `HOLDFAST_TABLE=${LOCKS_TABLE}`, "HOLDFAST_ENGINE=", "HOLDFAST_LOG_REFUSALS=0"];
  return {
    name: "of the lock service",
    command: "env",
    args: (port) => [`PORT=${port}`, ...variables, process.execPath, ...process.execArgv, SERVICE],
    startMs: START_MS,
  };
}

async function startRedis(): Promise<EngineProcess | undefined> {
  const command = "redis-server";
  if (spawnSync(command, ["--version"]).status !== 0) return undefined;
  const args = (port: number): readonly string[] => ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  return startProcess({ name: command, command, args, startMs: START_MS });
}

/** @throws Error if the contestant can't be opened */
async function startRunner(program: string, id: string, arena: Arena): Promise<Runner> {
  const child = fork(program, [id, JSON.stringify(arena)], { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const [opened] = (await Promise.race([once(child, "message"), endOf(child)])) as [Answer];
  if (opened.error !== undefined) throw new Error(opened.error);
  const waiting = new Map<number, (answer: Answer) => void>();
  const answer = (given: Answer): void => {
    waiting.get(given.id!)?.(given);
    waiting.delete(given.id!);
  };
  child.on("message", answer);
  child.once("exit", () => [...waiting.keys()].forEach((order) => answer({ id: order, error: "its process ended" })));
  let orders = 0;
  return {
    id,
    title: ENTRIES[id]!.title,
    ask(task, given?: unknown) {
      const order: Order = { id: ++orders, task, given };
      const result = new Promise((resolve, reject) => {
        waiting.set(order.id, ({ result: value, error }) => (error === undefined ? resolve(value) : reject(new Error(`${id}: ${error}`))));
        child.send(order, (error) => error && answer({ id: order.id, error: error.message }));
      });
      return result as ReturnType<Tasks[typeof task]>;
    },
    kill: () => void child.kill("SIGKILL"),
  };
}

async function endOf(child: ChildProcess): Promise<[Answer]> {
  await once(child, "exit");
  return [{ error: "its process ended" }];
}

/** The CPU of a process group's processes, from Linux's /proc. */
function cpuMsOf(groupId: number): number | undefined {
  if (process.platform !== "linux") return undefined;
  let ticks = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      // After the name in brackets: state, parent, group, … and at 11 and 12 the user's and the system's ticks.
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
      if (Number(fields[2]) === groupId) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      // The process has ended since the directory was read.
    }
  }
  return (ticks * 1000) / TICKS;
}
