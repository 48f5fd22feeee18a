/**
 * Clients with two ways that compare them, in a world of their own, beside a history's other clients. Some do nothing but runs or sets, and
 * must fail over all the same (L6). One was given another table than the service has, on which others use the same keys. It asks for that
 * table again and again, and must never use it beside the service's callers (S1).
 */
import { LeaseIds } from "../../../lib/client/ask/lease-ids.js";
import { createClient } from "../../../lib/client/client.js";
import type { Lease } from "../../../lib/client/hold/lease-types.js";
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import { failover } from "../../../lib/client/wire/failover.js";
import { wrapped } from "../../../lib/core/api/call.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import { oneClock } from "../../../lib/service/clocks.js";
import { lockService } from "../../../lib/service/service.js";
import type { LockStore } from "../../../lib/store/port.js";
import { createMemoryStore } from "../../support/memory-store.js";
import { NAMESPACE, POLICY } from "../backend.js";
import { Random } from "../random.js";
import type { Bench } from "../oracles/verdict.js";
import { Process, World } from "../world.js";

/** Every so many seeds, a history has these clients too: those that leave this remainder. */
const EVERY = 5;
const REMAINDER = 3;
const KEYS = ["WAY_1", "WAY_2"];
const BUSY_MS = 120_000;
const LEASE_MS = 6000;

/** Runs the clients of `seed`, if it has any, and reports what they broke. */
// Over 60 lines: the clients share the world and its two tables.
export async function checkComparedWays(seed: number, bench: Pick<Bench, "coverage" | "fail">): Promise<void> {
  if (seed % EVERY !== REMAINDER) return;
  const random = new Random(0xc0a5 ^ seed);
  const world = new World(Date.UTC(2027, 0, 1));
  const clock = new Process(world);
  const untilMs = world.nowMs + BUSY_MS;
  const runtime = { clock, random: () => random.unit() };
  const [shared, other] = [createMemoryStore({ policy: POLICY, ...runtime }), createMemoryStore({ policy: POLICY, ...runtime })];
  const leases = new Set<Lease>();
  /** The service answers nobody before this time. */
  let downUntilMs = 0;

  function on(store: LockStore, principal: string): ServiceApi {
    const caller = { principal, namespace: NAMESPACE, requestId: "simulated" };
    return lockService({ store, log: () => undefined, clock }, caller, oneClock(clock));
  }

  /** The service as `principal` reaches it. */
  function overNetwork(principal: string): ServiceApi {
    return wrapped(on(shared, principal), (next) => async (operation, request) => {
      await world.sleep(random.between(1, 30));
      if (world.nowMs < downUntilMs) return new Promise(() => undefined);
      const answer = await next(operation, request, {});
      await world.sleep(random.between(1, 30));
      return world.nowMs < downUntilMs ? new Promise(() => undefined) : answer;
    });
  }

  function join(name: string, table: LockStore): LockClient {
    const { api, use } = failover({
      ...{ via: "auto", ...runtime, service: overNetwork(`${NAMESPACE}/${name}`) },
      onTable: ({ principal }) => on(table, principal),
      own: { namespace: NAMESPACE, principal: "direct", format: 0, clockErrorMs: DEFAULTS.clockErrorMs, retentionMs: POLICY.retentionMs },
      configured: ["format"],
      emit({ type, error }) {
        if (type === "failover") bench.coverage.failovers++;
        if (type === "fallback") bench.coverage.fallbacks++;
        if (type === "failover-refused" && table === shared)
          bench.fail("L6", `${name}: the two ways are the same, and yet: ${String(error)}`);
      },
    });
    return clientOf(api, use);
  }

  function clientOf(api: ServiceApi, use?: LockClient["use"]): LockClient {
    const ids = new LeaseIds(clock, (count) => random.bytes(count));
    return createClient({ api, ...runtime, ids, ...(use && { use }) });
  }

  /** Goes on with `act` until the end, whatever becomes of it. */
  function repeat(act: () => Promise<unknown>): void {
    const again = async (): Promise<void> => {
      while (world.nowMs < untilMs) {
        await world.sleep(random.between(0, 1000));
        await act().catch(() => undefined);
      }
    };
    void again();
  }

  /** Holds one of the keys for a time. */
  async function hold(client: LockClient, mostMs: number): Promise<void> {
    const lease = await client.tryAcquire(random.pick(KEYS), { leaseMs: LEASE_MS });
    if (!lease) return;
    leases.add(lease);
    await world.sleep(random.between(0, mostMs));
    await lease.release().catch(() => undefined);
    leases.delete(lease);
  }

  world.atRest = () => {
    const held = [...leases].filter((lease) => lease.isHeld()).map(({ key }) => key);
    for (const key of held) if (held.indexOf(key) !== held.lastIndexOf(key)) bench.fail("S1", `${key}: two believe that they hold it`);
  };
  let runs = 0;
  const [runner, collector, mistaken] = [join("runner", shared), join("collector", shared), join("mistaken", other)];
  const [neighbour, stranger] = [clientOf(overNetwork(`${NAMESPACE}/neighbour`)), clientOf(on(other, `${NAMESPACE}/stranger`))];
  repeat(() => runner.runOnce(`RUN_${++runs}`, { leaseMs: LEASE_MS }, () => world.sleep(random.between(0, 300))));
  repeat(() => collector.withLocks(["SET_1", "SET_2"], { leaseMs: LEASE_MS }, () => world.sleep(random.between(0, 300))));
  for (const client of [neighbour, mistaken]) repeat(() => hold(client, 4000));
  // Often enough that the other table forgets ids within seconds.
  repeat(() => Promise.all(KEYS.map((key) => stranger.withLock(key, { leaseMs: LEASE_MS }, () => undefined))));
  // Before its first request, a client may choose any way.
  void mistaken.health().catch(() => undefined);
  repeat(async () => {
    await world.sleep(random.between(0, 20_000));
    await mistaken.use(random.pick(["table", "auto", "service"]));
  });
  world.in(random.between(0.3 * BUSY_MS, 0.6 * BUSY_MS), () => void (downUntilMs = world.nowMs + random.between(5000, 30_000)));
  await world.run(untilMs);
}
