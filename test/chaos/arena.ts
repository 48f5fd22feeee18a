/**
 * Real processes under faults that are drawn from a seed: workers over HTTP and straight on the table, two services, the
 * engine, and the resource that the workers share. Proxies between them lose, delay, repeat and answer requests. Processes
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
import { type Engine, startEngine } from "../../infra/local/engine.js";
import { Random } from "../simulation/random.js";
import { type Child, startChild } from "../support/child.js";
import { type Draw, startFaultProxy } from "../support/fault-proxy.js";
import { drawnFaults } from "./faults.js";
import type { ServiceOrder } from "./service.js";

/** The address of the locks: a service, or two as the doors of one table, or a table. */
export type LocksAddress = { readonly url: string; readonly other?: string } | { readonly endpoint: string; readonly tableName: string };

/** A worker's instructions that are the same for all kinds of workers. */
export interface CommonOrder {
  readonly name: string;
  readonly seed: number;
  readonly locks: LocksAddress;
  readonly resource: string;
  /** The file to which the worker appends its history. */
  readonly history: string;
}

/** The processes of a run. Scripts are named relative to this directory; their orders are JSON. */
export interface Cast {
  readonly workers: number;
  readonly workerScript: string;
  /** Completes the order of the worker of this index. */
  readonly orderOf: (common: CommonOrder, index: number) => CommonOrder;
  readonly resourceScript: string;
  readonly resourceOrder: object;
  /** False: workers reach the resource without a proxy. @default true */
  readonly isResourceBehindProxy?: boolean;
  /** False: no wall clock jumps. @default true */
  readonly clocksJump?: boolean;
}

/** The course of a run. */
export interface Course {
  readonly seed: number;
  /** The time with faults, in ms. */
  readonly faultsMs: number;
  /** Faults continue until the resource's data are enough, however slow the machine is. @default they are */
  readonly isEnough?: (data: unknown) => boolean;
  /** The time without faults after it, in ms. */
  readonly healedMs: number;
  /** True: the time passes without faults. @default false */
  readonly isCalm?: boolean;
  /**
   * True: the table is one of several Regions. Each service is a door of its own, which is cut off too, and a worker over HTTP has the URLs of
   * both. @default false: workers have one URL for both services
   */
  readonly inRegions?: boolean;
}

/** The outcome of a run, for a judge. */
export interface Remains {
  /** The number of faults of each kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** Parts of the machine that this run could not attack, and why. */
  readonly notices: readonly string[];
  /** Processes that ended by themselves, or did not end when they should. */
  readonly crashes: readonly string[];
  /** The time of the last fault, in µs of the monotonic clock. */
  readonly healedAt: number;
  /** The resource's data. */
  readonly data: unknown;
  /** The workers' histories: objects as JSON. */
  readonly lines: readonly string[];
}

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

/** Lets workers work under faults. @throws Error if a process can't start. */
// Over 60 lines: the processes of a run, which start and end together.
export async function play(
  cast: Cast,
  { seed, faultsMs, isEnough = () => true, healedMs, isCalm = false, inRegions = false }: Course,
): Promise<Remains> {
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
  const resource = startChild(cast.resourceScript, import.meta.url, cast.resourceOrder);
  const { url: resourceUrl } = (await resource.reported("ready")) as unknown as { readonly url: string };

  const urls: string[] = [];
  let turn = 0;
  const toEngine = await startFaultProxy(() => engine.endpoint, drawn.draw("engine"));
  const toService = await startFaultProxy(() => urls[turn++ % SERVICES]!, drawn.draw("service"));
  const toResource = await startFaultProxy(resourceUrl, drawn.draw("resource"));
  const doors = await Promise.all(
    Array.from({ length: inRegions ? SERVICES : 0 }, async (_, index) => {
      const door = { isCut: false };
      const draw = (place: "engine" | "service"): Draw => {
        const drawFault = drawn.draw(place);
        return (request) => (door.isCut ? { kind: "lose-request" } : drawFault(request));
      };
      const table = await startFaultProxy(() => engine.endpoint, draw("engine"));
      const service = await startFaultProxy(() => urls[index]!, draw("service"));
      return { door, table, service };
    }),
  );
  const proxies = [toEngine, toService, toResource, ...doors.flatMap(({ table, service }) => [table, service])];

  const faketime = cast.clocksJump === false ? undefined : (process.env["LIBFAKETIME"] ?? installedFaketime());
  if (faketime === undefined && cast.clocksJump !== false) notices.push("libfaketime is not installed: no wall clock jumps");
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
    const region = doors[index];
    const endpoint = (region?.table ?? toEngine).endpoint;
    const order: ServiceOrder = { endpoint, tableName: TABLE_NAME, machineStartMs, ...(region && { ownUrl: region.service.endpoint }) };
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
  const workers = Array.from({ length: cast.workers }, (_, index): Slot => {
    let lives = 0;
    const isTable = index % 2 === 1;
    const history = join(directory, `history-${index}`);
    const [first, second] = index % 4 === 0 ? doors : doors.toReversed();
    const services = first && second ? { url: first.service.endpoint, other: second.service.endpoint } : { url: toService.endpoint };
    const locks = isTable ? { endpoint: toEngine.endpoint, tableName: TABLE_NAME } : services;
    const start = async (): Promise<void> => {
      const name = `${isTable ? "table" : "http"}-${index}-${++lives}`;
      const common: CommonOrder = {
        ...{ name, locks, history, seed: seed + 100 * lives + index },
        resource: cast.isResourceBehindProxy === false ? resourceUrl : toResource.endpoint,
      };
      const child = startChild(cast.workerScript, import.meta.url, cast.orderOf(common, index), clockOf(`worker-${index}`));
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
  const doorSlots = doors.map((_, index): Slot => ({ name: `region-${index}`, start: async () => undefined, isBusy: false }));
  const cutOff = async (slot: Slot): Promise<void> => {
    const { door } = doors[doorSlots.indexOf(slot)]!;
    door.isCut = true;
    await delay(random.whole(100, random.pick(FREEZES_MS)));
    door.isCut = false;
  };
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
  const regionCutOff = ["Region cut off", doorSlots, cutOff] as const;
  const acts: readonly (readonly [what: string, among: readonly Slot[], act: (slot: Slot) => Promise<void>])[] = [
    ["worker frozen", workers, freeze],
    ["worker killed", workers, kill],
    ["service frozen", services, freeze],
    ["service killed", services, kill],
    ...(inRegions ? [regionCutOff] : []),
    ...(engine.groupId === undefined ? [] : [["engine frozen", [engineSlot], freezeEngine] as const]),
    ...(isPersistent ? [["engine restarted", [engineSlot], restartEngine] as const] : []),
    ...(faketime === undefined ? [] : [["wall clock jumped", [...workers, ...services], jumps] as const]),
  ];

  try {
    await Promise.all(services.map(({ start }) => start()));
    await Promise.all(workers.map(({ start }) => start()));
    const underWay: Promise<void>[] = [];
    const endMs = performance.now() + faultsMs;
    for (let next = 0; performance.now() < endMs || !isEnough(await dataOf(resourceUrl)); next++) {
      if (next % 6 === 0 && !isCalm) drawn.mix();
      await delay(random.whole(...PAUSE_MS));
      if (isCalm) continue;
      // Every run has at least one Region that is cut off.
      const [what, among, act] = inRegions && next === 0 ? regionCutOff : random.pick(acts);
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
    const data = await dataOf(resourceUrl);
    const lines = readdirSync(directory)
      .filter((name) => name.startsWith("history-"))
      .flatMap((name) => linesOf(join(directory, name)));
    return { faults, notices, crashes, healedAt, data, lines };
  } finally {
    await Promise.all([...workers, ...services].map(async ({ child }) => child?.kill()));
    await resource.kill();
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await engine.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function dataOf(resourceUrl: string): Promise<unknown> {
  return (await fetch(resourceUrl)).json();
}

/** Lets a worker end its last round. */
async function end({ name, child }: Slot, crashes: string[]): Promise<void> {
  child?.signal("SIGTERM");
  const isOver = await Promise.race([child?.ended.then(() => true), delay(END_MS, false, { ref: false })]);
  if (isOver === false) crashes.push(`${name} did not end within ${END_MS / 1000} s`);
}

/** Reads a history. A process that was killed may have left half a line. */
function linesOf(path: string): readonly string[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line.endsWith("}"));
}

function installedFaketime(): string | undefined {
  const libraries = existsSync("/usr/lib") ? readdirSync("/usr/lib").map((name) => `/usr/lib/${name}/faketime/libfaketime.so.1`) : [];
  return [...libraries, "/usr/lib/faketime/libfaketime.so.1"].find((path) => existsSync(path));
}
