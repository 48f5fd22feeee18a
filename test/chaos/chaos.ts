/**
 * Real processes under faults that are drawn from a seed: workers over HTTP and straight on the table, two services, the
 * engine, and the resource that the locks guard. Proxies between them lose, delay, repeat and answer requests. Processes
 * are frozen, killed and started again, and wall clocks jump if the machine has libfaketime. The seed fixes what is drawn,
 * and the machine when it happens: the same seed gives similar runs, not equal ones.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import type { Engine } from "../../infra/local/engine.js";
import { startEngine } from "../../infra/local/engine.js";
import { Random } from "../simulation/random.js";
import type { Child } from "../support/child.js";
import { startChild } from "../support/child.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import { drawnFaults } from "./faults.js";
import type { Verdict } from "./judge.js";
import { judge } from "./judge.js";
import type { Guarded, ResourceOrder } from "./resource.js";
import type { ServiceOrder } from "./service.js";
import type { Line, WorkerOrder } from "./worker.js";

/** The options of a run. */
export interface ChaosOptions {
  readonly seed: number;
  /** The time with faults, in ms. */
  readonly faultsMs: number;
  /** Faults continue until the resource has accepted this many writes, however slow the machine is. @default 0 */
  readonly writes?: number;
  /** The time without faults after it, in which every key must be granted again, in ms. 0 skips the check. */
  readonly healedMs: number;
  /** The control: workers that take no lock, or a resource that compares no tokens. */
  readonly without?: "lock" | "token" | undefined;
}

/** The outcome of a run. */
export interface ChaosReport extends Verdict {
  /** The number of faults of each kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** Parts of the machine that this run could not attack, and why. */
  readonly notices: readonly string[];
  readonly resource: Readonly<Record<string, Guarded>>;
}

const KEYS = Array.from({ length: 8 }, (_, order) => `ORDER_${order}`);
const WORKERS = 6;
const SERVICES = 2;
const TABLE_NAME = "chaos";
/** The time between two faults of processes, in ms. */
const PAUSE_MS = [300, 2500] as const;
/** The longest freezes of a process, in ms: a pause, and one past every lease of the workers and its margin. */
const FREEZES_MS = [500, 6000] as const;
/** The time for a worker to end its last round, in ms. */
const END_MS = 30_000;
/** The furthest jump of a wall clock, in s. A function whose clock is more than 10 s from its gateway's decides nothing. */
const JUMP_SEC = 15;

/** A process that can be frozen, killed and started again. */
interface Slot {
  readonly name: string;
  readonly start: () => Promise<void>;
  child?: Child;
  isBusy: boolean;
}

/** Runs workers under faults, and judges what they did. @throws Error if a process can't start. */
// Over 60 lines: the processes of a run, which start and end together.
export async function chaos({ seed, faultsMs, writes = 0, healedMs, without }: ChaosOptions): Promise<ChaosReport> {
  const random = new Random(seed);
  const directory = await mkdtemp(join(tmpdir(), "holdfast-chaos-"));
  const faults: Record<string, number> = {};
  const count = (what: string): void => void (faults[what] = (faults[what] ?? 0) + 1);
  const notices: string[] = [];
  const crashes: string[] = [];
  const drawn = drawnFaults(seed, count);

  const dataFile = join(directory, "engine.db");
  let engine: Engine = await startEngine({ dataFile });
  const isPersistent = engine.kind === "dynoxide";
  if (!isPersistent) notices.push(`the engine ${engine.kind} keeps its data in memory: it is not restarted`);
  const direct = engineClient(engine.endpoint);
  await createTable(direct, TABLE_NAME);
  direct.destroy();
  const resourceOrder: ResourceOrder = { comparesTokens: without !== "token" };
  const resource = startChild("resource.ts", import.meta.url, resourceOrder);
  const { url: resourceUrl } = (await resource.reported("ready")) as unknown as { readonly url: string };

  const urls: string[] = [];
  let turn = 0;
  const toEngine = await startFaultProxy(() => engine.endpoint, drawn.draw("engine"));
  const toService = await startFaultProxy(() => urls[turn++ % SERVICES]!, drawn.draw("service"));
  const toResource = await startFaultProxy(resourceUrl, drawn.draw("resource"));
  const proxies = [toEngine, toService, toResource];

  const faketime = process.env["LIBFAKETIME"] ?? installedFaketime();
  if (faketime === undefined) notices.push("libfaketime is not installed: no wall clock jumps");
  const clockFile = (name: string): string => join(directory, `clock-${name}`);
  const clockOf = (name: string): Record<string, string> => {
    if (faketime === undefined) return {};
    writeFileSync(clockFile(name), "+0");
    const settings = { FAKETIME_TIMESTAMP_FILE: clockFile(name), FAKETIME_CACHE_DURATION: "1", FAKETIME_DONT_FAKE_MONOTONIC: "1" };
    return { LD_PRELOAD: faketime, ...settings };
  };
  const jump = (name: string, seconds: number): void => writeFileSync(clockFile(name), `${seconds < 0 ? "" : "+"}${seconds}`);

  const services = Array.from({ length: SERVICES }, (_, index): Slot => {
    const name = `service-${index}`;
    const machineStartMs = Date.now() - Number(process.hrtime.bigint()) / 1e6;
    const order: ServiceOrder = { endpoint: toEngine.endpoint, tableName: TABLE_NAME, machineStartMs };
    const start = async (): Promise<void> => {
      slot.child = startChild("service.ts", import.meta.url, order, clockOf(name));
      urls[index] = (await slot.child.reported("ready"))["url"];
      // The handler prints the failures that it did not expect.
      void slot.child.reported("failed").then(
        ({ error }) => crashes.push(`${name}: ${error}`),
        () => undefined,
      );
    };
    const slot: Slot = { name, start, isBusy: false };
    return slot;
  });
  const workers = Array.from({ length: WORKERS }, (_, index): Slot => {
    let lives = 0;
    const isTable = index % 2 === 1;
    const history = join(directory, `history-${index}`);
    const locks = isTable ? { endpoint: toEngine.endpoint, tableName: TABLE_NAME } : { url: toService.endpoint };
    const start = async (): Promise<void> => {
      const name = `${isTable ? "table" : "http"}-${index}-${++lives}`;
      const order: WorkerOrder = {
        ...{ name, locks, history, seed: seed + 100 * lives + index },
        ...{ resource: toResource.endpoint, keys: KEYS, takesLock: without !== "lock" },
      };
      const child = startChild("worker.ts", import.meta.url, order, clockOf(`worker-${index}`));
      slot.child = child;
      void child.ended.then(({ code, stderr }) => code !== 0 && code !== null && crashes.push(`${name} ended with ${code}: ${stderr}`));
    };
    const slot: Slot = { name: `worker-${index}`, start, isBusy: false };
    return slot;
  });

  const withSlot = async (slot: Slot, act: (slot: Slot) => Promise<void>): Promise<void> => {
    slot.isBusy = true;
    await act(slot);
    slot.isBusy = false;
  };
  const freeze = async ({ child }: Slot): Promise<void> => {
    child?.signal("SIGSTOP");
    await delay(random.whole(100, random.pick(FREEZES_MS)));
    child?.signal("SIGCONT");
  };
  const kill = async ({ child, start }: Slot): Promise<void> => {
    await child?.kill();
    await delay(random.whole(0, 1000));
    await start();
  };
  const jumps = async ({ name }: Slot): Promise<void> => jump(name, random.whole(-JUMP_SEC, JUMP_SEC));
  const engineSlot: Slot = { name: "engine", start: async () => undefined, isBusy: false };
  const freezeEngine = async (): Promise<void> => {
    process.kill(-engine.groupId!, "SIGSTOP");
    await delay(random.whole(100, random.pick(FREEZES_MS)));
    process.kill(-engine.groupId!, "SIGCONT");
  };
  const restartEngine = async (): Promise<void> => {
    process.kill(-engine.groupId!, "SIGKILL");
    await engine.stop();
    await delay(random.whole(0, 1000));
    engine = await startEngine({ dataFile });
  };
  const acts: readonly (readonly [what: string, among: readonly Slot[], act: (slot: Slot) => Promise<void>])[] = [
    ["worker frozen", workers, freeze],
    ["worker killed", workers, kill],
    ["service frozen", services, freeze],
    ["service killed", services, kill],
    ...(engine.groupId === undefined ? [] : [["engine frozen", [engineSlot], freezeEngine] as const]),
    ...(isPersistent ? [["engine restarted", [engineSlot], restartEngine] as const] : []),
    ...(faketime === undefined ? [] : [["wall clock jumped", [...workers, ...services], jumps] as const]),
  ];

  try {
    await Promise.all(services.map(({ start }) => start()));
    await Promise.all(workers.map(({ start }) => start()));
    const underWay: Promise<void>[] = [];
    const endMs = performance.now() + faultsMs;
    for (let next = 0; performance.now() < endMs || (writes > 0 && (await written(resourceUrl)) < writes); next++) {
      if (next % 6 === 0) drawn.mix();
      await delay(random.whole(...PAUSE_MS));
      const [what, among, act] = random.pick(acts);
      const slot = random.pick(among);
      if (slot.isBusy) continue;
      count(what);
      underWay.push(withSlot(slot, act));
    }
    drawn.end();
    await Promise.all(underWay);
    if (faketime !== undefined) for (const { name } of [...workers, ...services]) jump(name, 0);
    const healedAt = Number(process.hrtime.bigint() / 1000n);
    await delay(healedMs);
    await Promise.all(workers.map((slot) => end(slot, crashes)));
    const guarded = await dataOf(resourceUrl);
    const lines = readdirSync(directory)
      .filter((name) => name.startsWith("history-"))
      .flatMap((name) => linesOf(join(directory, name)));
    const verdict = judge(lines, guarded, KEYS, healedMs > 0 ? healedAt : undefined);
    const crashed = crashes.map((what) => ({ key: "", what }));
    return { ...verdict, violations: [...verdict.violations, ...crashed], faults, notices, resource: guarded };
  } finally {
    await Promise.all([...workers, ...services].map(async ({ child }) => child?.kill()));
    await resource.kill();
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await engine.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function dataOf(resourceUrl: string): Promise<Readonly<Record<string, Guarded>>> {
  return (await (await fetch(resourceUrl)).json()) as Record<string, Guarded>;
}

async function written(resourceUrl: string): Promise<number> {
  return Object.values(await dataOf(resourceUrl)).reduce((sum, { log }) => sum + log.length, 0);
}

/** Lets a worker end its last round. */
async function end({ name, child }: Slot, crashes: string[]): Promise<void> {
  child?.signal("SIGTERM");
  const isOver = await Promise.race([child?.ended.then(() => true), delay(END_MS, false, { ref: false })]);
  if (isOver === false) crashes.push(`${name} did not end within ${END_MS / 1000} s`);
}

/** Reads a history. A process that was killed may have left half a line. */
function linesOf(path: string): readonly Line[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as Line);
}

function installedFaketime(): string | undefined {
  const libraries = existsSync("/usr/lib") ? readdirSync("/usr/lib").map((name) => `/usr/lib/${name}/faketime/libfaketime.so.1`) : [];
  return [...libraries, "/usr/lib/faketime/libfaketime.so.1"].find((path) => existsSync(path));
}
