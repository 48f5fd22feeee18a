/**
 * A client directly on the table whose own clock is wrong, was frozen or was idle for long. Regressions: the first
 * write of a process relied on its own clock alone; and bounds of the table's time that had grown too wide refused
 * every request from then on, so that no response could narrow them.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { describe, expect, it } from "vitest";
import { createPolicy } from "../../lib/core/policy.js";
import type { Clock } from "../../lib/core/time.js";
import { tableClocks } from "../../lib/service/clocks.js";
import { lockService } from "../../lib/service/service.js";
import type { LockStore } from "../../lib/store/port.js";
import { createMemoryStore, createMemoryTable } from "../support/memory-store.js";
import { watchTableClock } from "../../lib/store/dynamo/table-clock.js";
import { VirtualClock } from "../../lib/testing.js";
import { leaseIdAt } from "../support/lease-ids.js";

const KEY = "ORDER_1231";
const LEASE_MS = 2000;
const HOUR_MS = 3_600_000;

type Next = (args: object) => Promise<unknown>;
type Listener = (next: Next) => Next;

/** The header `Date` of a response at this time, as DynamoDB sends it. */
function dateAt(ms: number): string | undefined {
  return new Date(ms).toUTCString();
}

/** The service in this process, on a table that dates each of its responses with the true time, in whole seconds. */
// Over 60 lines: the parts of one machine, which share its clocks.
function directMode({ wallBy = 0, dateOf = dateAt } = {}) {
  const truth = new VirtualClock();
  /** An answer of the table takes `answerMs`. */
  const machine = { wallBy, stoppedMs: 0, answerMs: 0 };
  const clock: Clock = {
    wallMs: () => truth.monotonicMs() + machine.wallBy,
    monotonicMs: () => truth.monotonicMs() - machine.stoppedMs,
    after: (delayMs, task) => truth.after(delayMs, task),
    inBackground: (delayMs, task) => truth.inBackground(delayMs, task),
  };
  let listener: Listener = (next) => next;
  const stack = { add: (middleware: Listener) => void (listener = middleware) };
  const time = watchTableClock({ middlewareStack: stack } as unknown as DynamoDBClient, clock);

  const told = { looks: 0, writes: 0 };
  const table = createMemoryTable();
  const counted = createMemoryStore({
    policy: createPolicy(),
    clock,
    table: { ...table, replace: (...write) => (told.writes++, table.replace(...write)) },
  });
  /** Runs `operation`, and gives the client the response's date. */
  async function dated<T>(operation: () => Promise<T>): Promise<T> {
    let result: T | undefined;
    await listener(async () => {
      result = await operation();
      const date = dateOf(truth.monotonicMs());
      await truth.advance(machine.answerMs);
      return { response: { headers: { "x-amzn-requestid": "R1", date } } };
    })({});
    return result as T;
  }
  let recorded: ReturnType<LockStore["tenancy"]> | undefined;
  const store: LockStore = {
    parameters: counted.parameters,
    limits: { ...counted.limits, take: (address, take, clocks) => dated(() => counted.limits.take(address, take, clocks)) },
    tenancy: (mine) => (recorded ??= dated(() => (told.looks++, counted.tenancy(mine)))),
    doors: () => dated(() => counted.doors()),
    apply: (address, command, clocks) => dated(() => counted.apply(address, command, clocks)),
    applyAll: (parts, clocks) => dated(() => counted.applyAll(parts, clocks)),
    read: (address) => dated(() => (told.looks++, counted.read(address))),
    list: (query) => dated(() => counted.list(query)),
    keepPayload: (address, payload, text) => dated(() => counted.keepPayload(address, payload, text)),
    readPayload: (address, digest) => dated(() => counted.readPayload(address, digest)),
  };
  const caller = { principal: "app/direct", namespace: "app", requestId: "direct" };
  const service = lockService({ store, log: () => undefined, clock }, caller, tableClocks(clock, time));
  const newId = (): string => leaseIdAt(truth.monotonicMs());
  return {
    truth,
    machine,
    table,
    told,
    service,
    newId,
    acquire: (key = KEY) => service.acquire({ key, leaseId: newId(), leaseMs: LEASE_MS }),
    /** A process that has just had a response from the table: its clocks were right until now. */
    async warm() {
      const leaseId = newId();
      expect(await service.acquire({ key: "warm", leaseId })).toMatchObject({ ok: true });
      expect(await service.release({ key: "warm", leaseId })).toMatchObject({ ok: true });
      Object.assign(told, { looks: 0, writes: 0 });
    },
  };
}

describe("a client whose own clock is hours off at its first request", () => {
  it.each([3 * HOUR_MS, -3 * HOUR_MS, 48 * HOUR_MS])("(by %d ms) is refused as clock-skew, and has written nothing", async (wallBy) => {
    const { acquire, table, told } = directMode({ wallBy });
    expect(await acquire()).toMatchObject({ ok: false, code: "clock-skew", definite: true });
    expect(told.writes).toBe(0);
    expect([...table.entries()]).toEqual([]);
  });

  it.each([3 * HOUR_MS, -3 * HOUR_MS])("(by %d ms) is told nothing of who holds by that clock either", async (wallBy) => {
    const { service } = directMode({ wallBy });
    expect(await service.inspect({ key: KEY })).toMatchObject({ code: "clock-skew" });
    expect(await service.check({ key: KEY, leaseId: leaseIdAt(0) })).toMatchObject({ code: "clock-skew" });
  });

  it("looked once to know, and works as soon as the clock is right", async () => {
    const { acquire, machine, told } = directMode({ wallBy: 3 * HOUR_MS });
    await acquire();
    expect(told.looks).toBe(1);
    machine.wallBy = 0;
    expect(await acquire()).toMatchObject({ ok: true, how: "granted" });
  });
});

describe("a client whose table's time can't be read, such as behind a proxy that changes Date", () => {
  const DATES: readonly (readonly [what: string, dateOf: (ms: number) => string | undefined])[] = [
    ["is missing", () => undefined],
    ["is sent twice", (ms) => `${dateAt(ms)}, ${dateAt(ms)}`],
    ["is no date", () => "soon"],
  ];

  it.each(DATES)("(it %s) decides nothing by its own clock alone, and health says so", async (_what, dateOf) => {
    const { service, newId, told, table } = directMode({ dateOf, wallBy: 10 * 60_000 });
    const leaseId = newId();
    const asked = { key: KEY, leaseId };
    const answers = await Promise.all([
      service.acquire({ ...asked, leaseMs: LEASE_MS }),
      service.renew(asked),
      service.check(asked),
      service.release(asked),
      service.breakHold({ key: KEY, reason: "x", fencingToken: 1 }),
      service.inspect({ key: KEY }),
      service.list({}),
      service.acquireSet({ locks: [{ key: KEY }], leaseId }),
      service.releaseSet({ keys: [KEY], leaseId }),
      service.start(asked),
      service.complete({ ...asked, outcome: { state: "succeeded" } }),
      service.take({ key: KEY, rates: [{ count: 1, perMs: 1000 }] }),
      service.health({}),
    ]);
    for (const answer of answers) expect(answer).toMatchObject({ ok: false, code: "clock-unknown", definite: true, retry: "never" });
    expect(told.writes).toBe(0);
    expect([...table.entries()]).toEqual([]);
  });

  it("decides by the bounds that it has, if an earlier answer had a date", async () => {
    let isDated = true;
    const { acquire, warm, truth } = directMode({ dateOf: (ms) => (isDated ? dateAt(ms) : undefined) });
    await warm();
    isDated = false;
    await truth.advance(60_000);
    expect(await acquire()).toMatchObject({ ok: true, how: "granted" });
  });
});

describe("a process that knows the table's time no better than vaguely", () => {
  type Machine = ReturnType<typeof directMode>;
  const PAUSES: readonly (readonly [what: string, pause: (of: Machine) => Promise<void>])[] = [
    [
      "after a freeze of 60 s in which its monotonic clock stood still",
      async ({ truth, machine }) => {
        await truth.advance(60_000);
        machine.stoppedMs += 60_000;
      },
    ],
    ["after two idle hours", ({ truth }) => truth.advance(2 * HOUR_MS)],
    ["after its wall was put right by 15 s, from 7.5 s behind", async ({ machine }) => void (machine.wallBy += 15_000)],
  ];

  it.each(PAUSES)("%s looks again, once, and grants", async (what, pause) => {
    const of = directMode(what.includes("7.5 s behind") ? { wallBy: -7500 } : {});
    await of.warm();
    await pause(of);
    expect(await of.acquire()).toMatchObject({ ok: true, how: "granted", lease: { leaseMs: LEASE_MS } });
    expect(of.told.looks).toBe(1);
    expect(await of.acquire("another")).toMatchObject({ ok: true });
    expect(of.told.looks).toBe(1);
  });

  it.each(PAUSES)("%s answers those who only look", async (what, pause) => {
    const of = directMode(what.includes("7.5 s behind") ? { wallBy: -7500 } : {});
    await of.warm();
    await pause(of);
    expect(await of.service.inspect({ key: KEY })).toMatchObject({ ok: true });
    expect(await of.service.health({})).toMatchObject({ ok: true });
  });

  it("after a step of 15 s away from the table's refuses while it lasts, and decides again when it is over", async () => {
    const { acquire, machine, told, warm } = directMode();
    await warm();
    machine.wallBy = 15_000;
    for (let requests = 0; requests < 3; requests++) expect(await acquire()).toMatchObject({ code: "clock-skew" });
    expect(told).toEqual({ looks: 1, writes: 0 });
    machine.wallBy = 0;
    expect(await acquire()).toMatchObject({ ok: true, how: "granted" });
  });
});

describe("a process that asks now and then", () => {
  it("looks at nothing before an uncontended acquire, once it is warm", async () => {
    const { acquire, truth, told, warm } = directMode();
    await warm();
    for (let minute = 0; minute < 20; minute++) {
      expect(await acquire(`ORDER_${minute}`)).toMatchObject({ ok: true });
      await truth.advance(60_000);
    }
    expect(told.looks).toBe(0);
  });
});

describe("a process that learns the table's time more exactly", () => {
  it("gets its whole burst at once: what it took by the wider bounds lies in no future of the narrower ones", async () => {
    const { service, machine } = directMode();
    const take = (key = "partner") => service.take({ key, rates: [{ count: 3, perMs: HOUR_MS, burst: 3 }] });
    machine.answerMs = 300;
    await take("another");
    machine.answerMs = 0;
    expect([await take(), await take(), await take()]).toMatchObject(
      [2, 1, 0].map((left) => ({ ok: true, startInMs: 0, remaining: [left] })),
    );
    expect(await take()).toMatchObject({ code: "rate-limited" });
  });

  it("is held by a clock that was put right for no longer than two that agree may be apart", async () => {
    const { service, machine } = directMode({ wallBy: 5000 });
    const take = () => service.take({ key: "partner", rates: [{ count: 2, perMs: HOUR_MS, burst: 2 }] });
    expect(await take()).toMatchObject({ ok: true });
    machine.wallBy = 0;
    expect(await take()).toMatchObject({ code: "rate-limited", retryAfterMs: 3000 });
  });
});
