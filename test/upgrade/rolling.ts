/**
 * A change of versions under load, forward and back, on one table: the old version alone, both, the next alone, both, the
 * old one alone, and the next once more. Clients keep one address. A function that goes is killed, as Lambda ends a sandbox
 * at any time, with the requests that it has in progress. The first stage with a violation is the last.
 */
import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { AcquireOptions } from "../../lib/index.js";
import { itemKey } from "../../lib/store/dynamo/item.js";
import { SHARED_NAMESPACE } from "../../lib/service/caller.js";
import { judge } from "../chaos/judge.js";
import type { Guarded, ResourceOrder } from "../chaos/resource.js";
import type { Line as WorkerLine, WorkerOrder } from "../chaos/worker.js";
import { type Child, startChild } from "../support/child.js";
import type { Edits } from "../support/edited-sources.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { type LoadContext, Holder, LeftRun, Line, runTwice, send, visit } from "./load.js";
import type { ServiceOrder } from "./service.js";
import { BESIDE_ATTRIBUTE, bundleVersion, NEWER_ATTRIBUTE, NOTE_ATTRIBUTE } from "./versions.js";

/** The options of a change. */
export interface RollingOptions {
  /** The old version: this tree, or this tree with a mistake. */
  readonly old?: Edits;
  readonly next: Edits;
  /** The time that each stage takes at least, in ms. */
  readonly stageMs: number;
}

/** The outcome of a change. */
export interface RollingReport {
  /** The broken properties. */
  readonly violations: readonly string[];
  /** The number of events of each kind. */
  readonly counts: Readonly<Record<string, number>>;
}

type Side = "old" | "next";
/** The sides that serve in each stage, after the old one alone. */
const STAGES: readonly (readonly Side[])[] = [["old", "next"], ["next"], ["old", "next"], ["old"]];
/** The stage in which the next version grants leases with its new option. */
const NEXT_ALONE = 1;
const CONTENDED = ["ORDER_0", "ORDER_1", "ORDER_2", "ORDER_3"];
const WORKERS = 2;
const HOLDERS = 6;
const NAMES = ["first", "second", "third"];
const PERMITS = { limit: 2 };
/** The codes of an acquire that ran out of time, on a key that others hold for long or on a machine that is busy elsewhere. */
const PATIENCE_CODES = ["wait-timeout", "unavailable"];

/** The functions of both sides behind one address. */
class Functions {
  readonly #bundles: Readonly<Record<Side, string>>;
  readonly #running = new Map<Side, { readonly child: Child; readonly url: string }>();
  #serving: readonly Side[] = [];
  #turn = 0;

  private constructor(
    bundles: Readonly<Record<Side, string>>,
    readonly table: FreshTable,
    readonly context: Omit<LoadContext, "url">,
  ) {
    this.#bundles = bundles;
  }

  static async bundled(versions: Readonly<Record<Side, Edits | undefined>>, table: FreshTable, context: Omit<LoadContext, "url">) {
    return new Functions({ old: await bundleVersion(versions.old), next: await bundleVersion(versions.next) }, table, context);
  }

  /** Returns the address of the function that serves the next request. */
  readonly address = (): string => {
    const side = this.#serving[this.#turn++ % this.#serving.length]!;
    this.context.count(`requests to the ${side} version`);
    return this.#running.get(side)!.url;
  };

  /** Starts the sides that are missing, sends all requests to these, and kills the others. */
  async serve(sides: readonly Side[]): Promise<void> {
    for (const side of sides) if (!this.#running.has(side)) this.#running.set(side, await this.#start(side));
    this.#serving = sides;
    for (const side of ["old", "next"] as const) if (!sides.includes(side)) await this.#kill(side);
  }

  async #start(side: Side): Promise<{ readonly child: Child; readonly url: string }> {
    const order: ServiceOrder = { directory: this.#bundles[side] };
    const child = startChild("service.ts", import.meta.url, order, {
      HOLDFAST_TABLE: this.table.tableName,
      AWS_ENDPOINT_URL_DYNAMODB: this.table.endpoint,
      ...{ AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local" },
    });
    void child.reported("failed").then(
      ({ error }) => this.context.violation(`the ${side} version failed: ${error}`),
      () => undefined,
    );
    const { url } = await child.reported("ready");
    return { child, url };
  }

  async #kill(side: Side): Promise<void> {
    await this.#running.get(side)?.child.kill();
    this.#running.delete(side);
  }

  async close(): Promise<void> {
    for (const side of ["old", "next"] as const) {
      await this.#kill(side);
      await rm(this.#bundles[side], { recursive: true });
    }
  }
}

/** Rolls forward and back under load. @throws Error if a process can't start. */
// Over 60 lines: the stages of one change, and the load that lasts through them.
export async function rollForwardAndBack({ old, next, stageMs }: RollingOptions): Promise<RollingReport> {
  const violations: string[] = [];
  const counts: Record<string, number> = {};
  const told = {
    violation: (what: string): void => void violations.push(what),
    count: (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1),
  };
  const table = await freshTable();
  const functions = await Functions.bundled({ old, next }, table, told);
  await functions.serve(["old"]);
  const proxy = await startFaultProxy(functions.address);
  const context: LoadContext = { url: proxy.endpoint, ...told };
  const contention = await startContention(context);
  let isOver = false;
  const over = (): boolean => isOver;

  const permits = new Set<AcquireOptions>();
  const readers = new Set<AcquireOptions>();
  const isOneKind = (): boolean => readers.size === 1 || [...readers].every(({ mode }) => mode === "shared");
  const load = [
    ...[1, 2, 3].map((order) => visit("PERMITS", { ...PERMITS, priority: order }, permits, ({ size }) => size <= 2, context, over)),
    ...[1, 2].map((order) => visit("BOOK", { mode: "shared", priority: order }, readers, isOneKind, context, over)),
    visit("BOOK", { mode: "exclusive" }, readers, isOneKind, context, over),
    runTwice(context, over),
  ];

  const holders = Array.from({ length: HOLDERS }, (_, order) => new Holder(`HELD_${order}`, context));
  const noted = Array.from({ length: HOLDERS }, (_, order) => new Holder(`NOTED_${order}`, context, `note-${order}`));
  const change = async (): Promise<void> => {
    await Promise.all(holders.map((holder) => holder.acquire()));
    await delay(stageMs);
    for (const [stage, sides] of STAGES.entries()) {
      // These cross the change: they begin before it, and end after it.
      const line = new Line(`LINE_${stage}`, context);
      const left = new LeftRun(`LEFT_${stage}`, context);
      await line.form(NAMES);
      await left.leave();
      await functions.serve(sides);
      await checkVersions(sides, context);
      if (stage === NEXT_ALONE) await Promise.all(noted.map((holder) => holder.acquire().then(() => comeAndLeave(holder.key, context))));
      await Promise.all([delay(stageMs), line.dissolve(NAMES), left.takeOver()]);
      if (violations.length > 0) return;
    }
    await checkOldAlone(noted, table, context);
    await functions.serve(["next"]);
    await checkNextAgain(noted, context);
  };
  try {
    await change().catch((error: unknown) => told.violation(`the change ended: ${String(error)}`));
    isOver = true;
    await Promise.all(load);
    await Promise.all([...holders, ...noted].map((holder) => holder.release()));
    const { violations: found, counts: counted } = await contention.end();
    return { violations: [...violations, ...found], counts: { ...counted, ...counts } };
  } finally {
    isOver = true;
    await contention.kill();
    await proxy.close();
    await functions.close();
    table.client.destroy();
  }
}

/** Checks that exactly these sides answer. */
async function checkVersions(sides: readonly Side[], { url, violation }: LoadContext): Promise<void> {
  const versions = new Set<Side>();
  for (let ask = 0; ask < 20; ask++) {
    const { body } = await send(`${url}/v1/health`, "GET");
    versions.add(String(body.version).startsWith("next-") ? "next" : "old");
  }
  if ([...versions].sort().join() !== [...sides].sort().join()) violation(`${[...versions].join()} answer, and not ${sides.join()}`);
}

/** Lets a waiter with a priority come and leave, for each of which the whole record is written. */
async function comeAndLeave(key: string, { url, violation }: LoadContext): Promise<void> {
  const path = `${url}/v1/locks/${key}/leases/${leaseIdAt(Date.now())}`;
  const { status } = await send(path, "PUT", { priority: 5 }, { prefer: "wait=0" });
  if (status !== 202) violation(`${key}: a waiter is told ${status}`);
  await send(path, "DELETE");
}

/** Checks what the old version does with leases that the next one granted: it keeps their new attributes, and it refuses the new option. */
async function checkOldAlone(noted: readonly Holder[], { client, tableName }: FreshTable, context: LoadContext): Promise<void> {
  const { url, violation } = context;
  for (const { key, leaseId, note } of noted) {
    await comeAndLeave(key, context);
    const Key = Object.fromEntries(
      Object.entries(itemKey({ namespace: SHARED_NAMESPACE, kind: "locks", key })).map(([name, value]) => [name, { S: value }]),
    );
    const { Item = {} } = await client.send(new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true }));
    const hold = Item["h"]?.M?.[leaseId]?.M ?? {};
    const isKept = hold[NOTE_ATTRIBUTE]?.S === note && hold[NEWER_ATTRIBUTE]?.N === "1";
    if (!isKept) violation(`${key}: the old version dropped attributes of the hold: ${JSON.stringify(hold)}`);
    if (Item[BESIDE_ATTRIBUTE]?.N !== "1") violation(`${key}: the old version dropped the attribute beside the parts`);
  }
  const { status, body } = await send(`${url}/v1/locks/NEW/leases/${leaseIdAt(Date.now())}`, "PUT", { note: "x" });
  if (status !== 400 || body.field !== "note" || body.definite !== true) violation(`the old version answers a new option with ${status}`);
}

/** Checks that the next version reads the new attributes after the old one wrote the records. */
async function checkNextAgain(noted: readonly Holder[], { url, violation }: LoadContext): Promise<void> {
  for (const { key, leaseId, note } of noted) {
    const { status, body } = await send(`${url}/v1/locks/${key}/leases/${leaseId}`, "GET");
    if (status !== 200 || body.note !== note) violation(`${key}: the next version shows the note ${body.note}, with ${status}`);
  }
}

interface Contention {
  end(): Promise<RollingReport>;
  kill(): Promise<void>;
}

/** Starts processes that contend for keys, each of which guards a counter and a log that compares tokens. */
async function startContention({ url }: LoadContext): Promise<Contention> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-rolling-"));
  const order: ResourceOrder = { comparesTokens: true };
  const resource = startChild("../chaos/resource.ts", import.meta.url, order);
  const { url: resourceUrl } = await resource.reported("ready");
  const workers = Array.from({ length: WORKERS }, (_, number) => {
    const worker: WorkerOrder = {
      ...{ name: `worker-${number}`, seed: number, keys: CONTENDED, takesLock: true },
      ...{ locks: { url }, resource: resourceUrl, history: join(directory, `history-${number}`) },
    };
    return startChild("../chaos/worker.ts", import.meta.url, worker);
  });
  // Until they are at work, they start, which takes all of a small machine.
  while (Object.keys(await guardedBy(resourceUrl)).length < CONTENDED.length) await delay(50);
  return {
    async end() {
      for (const worker of workers) worker.signal("SIGTERM");
      const ends = await Promise.all(workers.map(({ ended }) => ended));
      const data = await guardedBy(resourceUrl);
      const lines = readdirSync(directory).flatMap((name) => linesOf(join(directory, name)));
      const { violations, counts } = judge(lines, data, CONTENDED);
      const crashes = ends.filter(({ code }) => code !== 0).map(({ stderr }) => `a worker crashed: ${stderr}`);
      const refusals = lines
        .filter(({ event, code = "" }) => event === "failed" && !PATIENCE_CODES.includes(code))
        .map(({ key, code }) => `${key}: failed with ${code}`);
      return { violations: [...violations.map(({ key, what }) => `${key}: ${what}`), ...crashes, ...refusals], counts };
    },
    async kill() {
      await Promise.all([resource, ...workers].map((child) => child.kill()));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function guardedBy(resourceUrl: string): Promise<Readonly<Record<string, Guarded>>> {
  return (await send(resourceUrl, "GET")).body;
}

function linesOf(path: string): readonly WorkerLine[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as WorkerLine);
}
