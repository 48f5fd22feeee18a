/**
 * The log after a write happened, its response was lost, and the store or the client retried. Regression: the log had
 * no line. The first attempt never reached its log line and the second changed nothing, so a hold began or ended
 * without a trace in the log.
 */
import { describe, expect, it } from "vitest";
import { createPolicy } from "../../lib/core/policy.js";
import { digestOfPrincipal } from "../../lib/service/caller.js";
import { oneClock } from "../../lib/service/clocks.js";
import { lockService } from "../../lib/service/service.js";
import type { LogLine } from "../../lib/service/log.js";
import { type LockStore, StoreUnavailable } from "../../lib/store/port.js";
import { createMemoryStore } from "../support/memory-store.js";
import { VirtualClock } from "../../lib/testing.js";
import { leaseIdAt } from "../support/lease-ids.js";

const KEY = "ORDER_1231";
const HOLDER = "app/holder";
const kind = "runs";

/** A service whose table's responses can be lost, and a lease of it. */
async function losingAnswers() {
  const clock = new VirtualClock();
  const kept = createMemoryStore({ policy: createPolicy(), clock });
  let losing = 0;
  const store: LockStore = {
    ...kept,
    async apply(address, command, clocks) {
      const applied = await kept.apply(address, command, clocks);
      if (losing-- > 0) throw new StoreUnavailable("the answer was lost", false, false);
      return applied;
    },
  };
  const lines: LogLine[] = [];
  const as = (principal: string) =>
    lockService({ store, log: (line) => void lines.push(line), clock }, { principal, namespace: "app", requestId: "r" }, oneClock(clock));
  const service = as(HOLDER);
  const leaseId = leaseIdAt(clock.wallMs());
  /** Sends the request twice, with the first response lost. Returns the log lines of the second. */
  async function twice(ask: () => Promise<{ readonly ok: boolean }>) {
    losing = 1;
    expect(await ask()).toMatchObject({ ok: false, code: "unavailable", definite: false });
    lines.length = 0;
    const answer = await ask();
    expect(answer).toMatchObject({ ok: true });
    return lines;
  }
  async function acquired(): Promise<number> {
    const held = await service.acquire({ key: KEY, leaseId });
    if (!held.ok || !("lease" in held)) throw new Error(JSON.stringify(held));
    return held.lease.fencingToken;
  }
  return { clock, service, operator: as("app/operator"), leaseId, twice, acquired };
}

describe("a request whose answer was lost leaves a line when it is sent again:", () => {
  it("an acquire, replayed", async () => {
    const { service, leaseId, twice } = await losingAnswers();
    const lines = await twice(() => service.acquire({ key: KEY, leaseId, owner: "checkout" }));
    expect(lines).toMatchObject([{ event: "replayed", principal: HOLDER, owner: "checkout", fencingToken: expect.any(Number) as number }]);
  });

  it("a release, repeated", async () => {
    const { service, leaseId, twice, acquired } = await losingAnswers();
    await acquired();
    const lines = await twice(() => service.release({ key: KEY, leaseId }));
    expect(lines).toMatchObject([{ event: "ended", reason: "released", principal: HOLDER, repeated: true }]);
  });

  it("a cancel, repeated", async () => {
    const { service, leaseId, twice } = await losingAnswers();
    const lines = await twice(() => service.release({ key: KEY, leaseId }));
    expect(lines).toMatchObject([{ event: "ended", reason: "cancelled", repeated: true }]);
  });

  it("a transfer, repeated, with the new lease's token", async () => {
    const { clock, service, leaseId, twice, acquired } = await losingAnswers();
    const token = await acquired();
    const to = { leaseId: leaseIdAt(clock.wallMs()), owner: "worker" };
    const [line, ...more] = await twice(() => service.transfer({ key: KEY, leaseId, to }));
    expect(line).toMatchObject({ event: "transferred", principal: HOLDER, owner: "worker", repeated: true });
    expect(line?.fencingToken).toBeGreaterThan(token);
    expect(more).toEqual([]);
  });

  it("a break that lets the holder drain, repeated, with who broke it and why", async () => {
    const { operator, twice, acquired } = await losingAnswers();
    const fencingToken = await acquired();
    const lines = await twice(() => operator.breakHold({ key: KEY, fencingToken, reason: "stuck" }));
    expect(lines).toMatchObject([
      { event: "breaking", fencingToken, principal: digestOfPrincipal(HOLDER), by: "app/operator", reason: "stuck", repeated: true },
    ]);
  });

  it("a break by force, repeated, with who broke it and why", async () => {
    const { operator, twice, acquired } = await losingAnswers();
    const fencingToken = await acquired();
    const lines = await twice(() => operator.breakHold({ key: KEY, fencingToken, reason: "stuck", drainMs: 0 }));
    expect(lines).toMatchObject([{ event: "ended", fencingToken, by: "app/operator", reason: "broken: stuck", repeated: true }]);
  });

  it("an outcome, repeated", async () => {
    const { service, leaseId, twice } = await losingAnswers();
    await service.start({ kind, key: KEY, leaseId });
    const lines = await twice(() => service.complete({ kind, key: KEY, leaseId, outcome: { state: "succeeded" } }));
    expect(lines).toMatchObject([{ event: "recorded", outcome: "succeeded", attempt: 1, repeated: true }]);
  });

  it("a reset, repeated, with its reason", async () => {
    const { service, operator, leaseId, twice } = await losingAnswers();
    await service.start({ kind, key: KEY, leaseId });
    await service.complete({ kind, key: KEY, leaseId, outcome: { state: "succeeded" } });
    const lines = await twice(() => operator.resetRun({ key: KEY, reason: "stuck" }));
    expect(lines).toMatchObject([{ event: "reset", by: "app/operator", reason: "stuck", repeated: true }]);
  });
});

describe("a line of something that happened now", () => {
  it("never says that it is a repeat", async () => {
    const { service, operator, leaseId, twice, acquired, clock } = await losingAnswers();
    const fencingToken = await acquired();
    const lines = await twice(() => service.acquire({ key: KEY, leaseId }));
    await operator.breakHold({ key: KEY, fencingToken, reason: "stuck" });
    await service.release({ key: KEY, leaseId });
    const next = leaseIdAt(clock.wallMs());
    await service.acquire({ key: KEY, leaseId: next });
    await service.transfer({ key: KEY, leaseId: next, to: { leaseId: leaseIdAt(clock.wallMs()) } });
    expect(lines.map(({ event }) => event)).toEqual(["replayed", "breaking", "ended", "granted", "ended", "transferred"]);
    expect(lines.filter(({ repeated }) => repeated)).toEqual([]);
  });
});
