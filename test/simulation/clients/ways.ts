/**
 * Clients with two ways in a world of their own, beside a history's other clients: the service over a bad network, and the table directly,
 * under the service's principal. Requests arrive late, answers are lost, partitions go one way or both, the service answers 503 for a while,
 * and clocks are wrong. The checks: one believer for each key (S1), every grant is told or cancelled (L3), and a lease with heartbeats is
 * kept while the table can be reached (L6).
 */
import { LeaseIds } from "../../../lib/client/ask/lease-ids.js";
import { createClient } from "../../../lib/client/client.js";
import type { Lease } from "../../../lib/client/hold/lease-types.js";
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import { failover } from "../../../lib/client/wire/failover.js";
import type { CallerIdentity } from "../../../lib/core/api/locks.js";
import { apiBy, callOf } from "../../../lib/core/api/call.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { refuse } from "../../../lib/core/errors.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import { gatewayClocks, tableClocks } from "../../../lib/service/clocks.js";
import { lockService } from "../../../lib/service/service.js";
import type { LockStore } from "../../../lib/store/port.js";
import { type MemoryTable, createMemoryStore, createMemoryTable } from "../../support/memory-store.js";
import { NAMESPACE, POLICY } from "../backend.js";
import { drawClockError } from "../faults.js";
import { Random } from "../random.js";
import type { Bench } from "../oracles/verdict.js";
import { Process, World } from "../world.js";

/** The answer of a service that refuses everything: one to every operation. */
const REFUSED = refuse("unavailable", { definite: true, retry: "same" }) as never;

/** Every so many seeds, a history has clients with two ways too: those that leave this remainder. */
const EVERY = 5;
const REMAINDER = 2;
const KEYS = ["WAY_1", "WAY_2"];
const CLIENTS = 4;
const BUSY_MS = 240_000;
/** The time after which every late message has arrived and every lease has ended. */
const QUIET_MS = 60_000;
const LEASES_MS = [6000, 20_000];
/** The largest delay of a late request, and the largest stall of a write, in ms. */
const LATE_MS = 25_000;
const STALL_MS = 300;
/** The error of clocks that need not be right, in ms. */
const WRONG_MS = 9000;
const WIDTH_MS = 1000;

/** The state of the network between one client and the service. */
interface Link {
  readonly process: Process;
  /** `out`: nothing arrives; `in`: nothing comes back; `refusing`: the service can't reach its table. */
  state: "up" | "out" | "in" | "down" | "refusing";
}

/** Runs the clients with two ways of `seed`, if it has any, and reports what they broke. */
// Over 60 lines: one model or one server, whose parts share its state.
export async function checkWays(seed: number, bench: Pick<Bench, "coverage" | "fail">): Promise<void> {
  if (seed % EVERY !== REMAINDER) return;
  const random = new Random(0x3a75 ^ seed);
  const world = new World(Date.UTC(2027, 0, 1));
  const faults = { lost: random.pick([0, 0.1, 0.3]), late: random.pick([0, 0.1, 0.3]) };
  const records = createMemoryTable();
  const granted = new Set<string>();
  const told = new Set<string>();
  const cancelled = new Set<string>();
  const leases = new Set<Lease>();
  const slowly = async <T>(act: () => Promise<T>): Promise<T> => {
    await world.sleep(random.chance(0.1) ? random.between(0, STALL_MS) : random.between(0, 10));
    return act();
  };
  const table: MemoryTable = {
    ...records,
    read: (address) => slowly(() => records.read(address)),
    touchWaiter: (...touch) => slowly(() => records.touchWaiter(...touch)),
    replace: (address, next, seen) =>
      slowly(async () => {
        const result = await records.replace(address, next, seen);
        if (result.written) for (const leaseId of Object.keys(next.holds)) if (!(leaseId in (seen?.holds ?? {}))) granted.add(leaseId);
        return result;
      }),
  };
  const storeOf = (process: Process): LockStore =>
    createMemoryStore({ policy: POLICY, table, clock: process, random: () => random.unit() });
  const gateway = new Process(world, { wallErrorMs: drawClockError(random, DEFAULTS.clockErrorMs) });
  const functions = [0, 1].map((index) => new Process(world, { name: `function-${index}`, wallErrorMs: drawClockError(random, WRONG_MS) }));
  const caller = { principal: `${NAMESPACE}/shop`, namespace: NAMESPACE, requestId: "simulated" };
  const tableErrorMs = drawClockError(random, DEFAULTS.clockErrorMs);
  const names = lockService({ store: storeOf(gateway), log: () => undefined, clock: gateway }, caller, gatewayClocks(gateway, 0));
  const never = (): Promise<never> => new Promise(() => undefined);

  /** The service over the network of `link`. A lost message is silence. */
  function overNetwork(link: Link): ServiceApi {
    return apiBy(names, async (operation, request) => {
      if (link.state === "out" || link.state === "down" || random.chance(faults.lost / 2)) return never();
      await world.sleep(random.chance(faults.late) ? random.between(0, LATE_MS) : random.between(1, 60));
      if (link.state === "refusing") return REFUSED;
      const server = random.pick(functions);
      const deps = { store: storeOf(server), log: () => undefined, clock: server };
      const service = lockService(deps, caller, gatewayClocks(server, gateway.wallMs()));
      const answer = await callOf(service)(operation, request, {});
      await world.sleep(random.between(1, 60));
      return link.state === "up" && !random.chance(faults.lost / 2) ? answer : never();
    });
  }

  /** The table as `process` reaches it, under this identity. */
  function onTable(process: Process, { principal, namespace }: CallerIdentity): ServiceApi {
    const bounds = () => ({ lowMs: world.nowMs + tableErrorMs - WIDTH_MS / 2, highMs: world.nowMs + tableErrorMs + WIDTH_MS / 2 });
    const deps = { store: storeOf(process), log: () => undefined, clock: process };
    return lockService(deps, { principal, namespace, requestId: "direct" }, tableClocks(process, bounds));
  }

  /** Notes what the client is told of its ids, and which of them it cancels. */
  function noted(api: ServiceApi): ServiceApi {
    return {
      ...api,
      async acquire(request, options) {
        const answer = await api.acquire(request, options);
        if (answer.ok && "lease" in answer) told.add(answer.lease.leaseId);
        return answer;
      },
      release(request, options) {
        cancelled.add(request.leaseId);
        return api.release(request, options);
      },
    };
  }

  function join(index: number): { readonly link: Link; readonly client: LockClient } {
    const process = new Process(world, {
      name: `client-${index}`,
      wallErrorMs: drawClockError(random, WRONG_MS),
      rateError: random.pick([-1, 1, 0]) * DEFAULTS.clockRateError,
    });
    const link: Link = { process, state: "up" };
    const over = overNetwork(link);
    const { api, use } = failover({
      ...{ via: "auto", clock: process, random: () => random.unit() },
      ways: [
        { kind: "service", open: () => over },
        { kind: "table", open: (identity) => onTable(process, identity) },
      ],
      own: { namespace: NAMESPACE, principal: "direct", format: 0, clockErrorMs: DEFAULTS.clockErrorMs, retentionMs: POLICY.retentionMs },
      configured: ["format", "namespace"],
      emit({ type, error }) {
        if (type === "failover") bench.coverage.failovers++;
        if (type === "fallback") bench.coverage.fallbacks++;
        if (type === "failover-refused") bench.fail("L6", `the two ways are the same, and yet: ${String(error)}`);
      },
    });
    const ids = new LeaseIds(process, (count) => random.bytes(count));
    return { link, client: createClient({ api: noted(api), use, clock: process, random: () => random.unit(), ids }) };
  }

  async function live({ link, client }: ReturnType<typeof join>): Promise<void> {
    const wait = (ms: number): Promise<void> => new Promise((resolve) => void link.process.after(ms, resolve));
    while (world.nowMs < untilMs) {
      await wait(random.between(0, 2000));
      const isReady = (await client.health().catch(() => undefined))?.failover?.state === "ready";
      const options = { leaseMs: random.pick(LEASES_MS) };
      const key = random.pick(KEYS);
      const lease = await (
        random.chance(0.5) ? client.tryAcquire(key, options) : client.acquire(key, { ...options, waitMs: 20_000 })
      ).catch(() => null);
      if (!lease) continue;
      leases.add(lease);
      await wait(random.chance(0.5) ? random.between(0, 500) : random.between(0, 30_000));
      if (isReady && !lease.isHeld()) bench.fail("L6", `${key}: lost, although the table answered: ${String(lease.signal.reason)}`);
      await lease.release().catch(() => undefined);
      leases.delete(lease);
    }
    await client.close();
  }

  function disturb(link: Link): void {
    link.state = world.nowMs < untilMs ? random.pick(["up", "up", "out", "in", "down", "refusing"]) : "up";
    if (world.nowMs < untilMs) world.in(random.between(5000, 90_000), () => disturb(link));
  }

  world.atRest = () => {
    const held = [...leases].filter((lease) => lease.isHeld()).map(({ key }) => key);
    for (const key of held) if (held.indexOf(key) !== held.lastIndexOf(key)) bench.fail("S1", `${key}: two believe that they hold it`);
  };
  const untilMs = world.nowMs + BUSY_MS;
  for (let index = 0; index < CLIENTS; index++) {
    const joined = join(index);
    world.in(random.between(1000, 30_000), () => disturb(joined.link));
    void live(joined).catch((error: unknown) => bench.fail("internal", String(error)));
  }
  await world.run(untilMs);
  faults.lost = faults.late = 0;
  await world.run(untilMs + QUIET_MS);
  const unknown = [...granted].filter((leaseId) => !told.has(leaseId) && !cancelled.has(leaseId));
  if (unknown.length > 0) bench.fail("L3", `${unknown.length} granted, and neither told to a client nor cancelled by one`);
}
