/** The history of holds, rebuilt from the log lines of a random history alone, and compared with the records themselves. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogLine } from "../../lib/service/log.js";
import { ACQUIRE, directService, RELEASE, RENEW, hash } from "../support/direct-service.js";
import { ALICE, BOB } from "../support/http-event.js";
import { LEASE_ID } from "../support/lease-ids.js";
import { sized } from "../support/tier.js";

/** One hold of a key, current or past. */
interface HoldSpan {
  readonly lease: string;
  readonly owner: string;
  readonly fencingToken: number;
  readonly fromMs: number;
  readonly untilMs?: number;
}
type Spans = Readonly<Record<string, readonly HoldSpan[]>>;

/** The holds of each key, in order. @throws Error if the lines contradict each other. */
function rebuild(lines: readonly LogLine[]): Spans {
  const spans: Record<string, HoldSpan[]> = {};
  for (const { event, model, id, lease = "", owner = "", fencingToken, operateAtMs, heldMs, repeated } of lines) {
    if (repeated) continue; // Nothing happened then, and these histories lose no lines.
    const holds = (spans[`${model}_${id}`] ??= []);
    const last = holds.at(-1);
    if (event === "granted" || event === "transferred") {
      if (last && last.untilMs === undefined) throw new Error(`${lease} was granted while ${last.lease} held`);
      if (fencingToken === undefined || fencingToken <= (last?.fencingToken ?? 0))
        throw new Error(`${lease} was granted without a larger token`);
      holds.push({ lease, owner, fencingToken, fromMs: operateAtMs });
    }
    if (event === "ended" && fencingToken !== undefined) {
      if (last?.lease !== lease || last.fencingToken !== fencingToken || last.untilMs !== undefined)
        throw new Error(`${lease} ended and didn't hold`);
      if (heldMs !== operateAtMs - last.fromMs) throw new Error(`${lease} was not held for ${heldMs} ms`);
      holds.splice(-1, 1, { ...last, untilMs: operateAtMs });
    }
  }
  return spans;
}

/** One step of a history. A command that needs a missing lease is skipped. */
interface Step {
  readonly does: "acquire" | "again" | "renew" | "release" | "cancel" | "transfer" | "break" | "force";
  readonly key: "ORDER_1" | "ORDER_2";
  readonly which: number;
  readonly bob: boolean;
  readonly leaseMs: number;
  readonly passMs: number;
}

const steps = fc.array(
  fc.record<Step>({
    does: fc.constantFrom("acquire", "acquire", "again", "renew", "release", "cancel", "transfer", "break", "force"),
    key: fc.constantFrom("ORDER_1", "ORDER_2"),
    which: fc.nat(3),
    bob: fc.boolean(),
    leaseMs: fc.integer({ min: 1_000, max: 15_000 }),
    passMs: fc.oneof(fc.constant(0), fc.nat(20_000)),
  }),
  { minLength: 5, maxLength: 40 },
);

/** Plays the steps. Returns the lines, and the holds in the records after every step. */
async function play(history: readonly Step[]): Promise<{ lines: readonly LogLine[]; truth: Spans; refused: number }> {
  const { ask, clock, store, lines, newId } = directService();
  const used: Record<string, string[]> = { ORDER_1: [], ORDER_2: [] };
  const bodies = new Map<string, object>();
  const truth: Record<string, HoldSpan[]> = {};
  let refused = 0;
  for (const { does, key, which, bob, leaseMs, passMs } of history) {
    await clock.advance(passMs);
    const authorizer = bob ? BOB : ALICE;
    const leases = used[key] ?? [];
    const isNew = does === "acquire" || does === "cancel" || leases.length === 0;
    const leaseId = isNew ? newId() : (leases.at(-1 - (which % leases.length)) ?? "");
    const to = newId();
    const token = truth[key]?.at(-1)?.fencingToken ?? 1;
    leases.push(...(isNew ? [leaseId] : []), ...(does === "transfer" ? [to] : []));
    if (isNew) bodies.set(leaseId, { leaseMs, owner: `owner-${which}` });
    const asked = { key, leaseId, authorizer };
    const sent = {
      acquire: () => ask(ACQUIRE, { ...asked, body: bodies.get(leaseId) }),
      again: () => ask(ACQUIRE, { ...asked, body: bodies.get(leaseId) }),
      renew: () => ask(RENEW, { ...asked, body: { leaseMs } }),
      release: () => ask(RELEASE, asked),
      cancel: () => ask(RELEASE, asked),
      transfer: () => ask("POST /v1/locks/{key}/leases/{leaseId}/transfer", { ...asked, body: { leaseId: to } }),
      break: () => ask("POST /v1/locks/{key}/break", { key, authorizer, body: { reason: "stuck", fencingToken: token } }),
      force: () =>
        ask("POST /v1/locks/{key}/break", { key, authorizer, body: { reason: "stuck", fencingToken: token, drainMs: which * 500 } }),
    };
    if ((await sent[does]()).status >= 400) refused++;
    const spans = (truth[key] ??= []);
    const [now] = Object.entries((await store.read({ namespace: "default", kind: "locks", key }))?.holds ?? {});
    const last = spans.at(-1);
    if (last && last.untilMs === undefined && last.fencingToken !== now?.[1].fencingToken)
      spans.splice(-1, 1, { ...last, untilMs: clock.wallMs() });
    if (now && last?.fencingToken !== now[1].fencingToken) {
      spans.push({ lease: hash(now[0]), owner: now[1].owner, fencingToken: now[1].fencingToken, fromMs: clock.wallMs() });
    }
  }
  return { lines, truth, refused };
}

describe("the log", () => {
  it("tells who held what when, whatever happened, and never a whole leaseId", async () => {
    const seen = new Set<string>();
    const property = fc.asyncProperty(steps, async (history) => {
      const { lines, truth, refused } = await play(history);
      const withHolds = Object.entries(rebuild(lines)).filter(([, spans]) => spans.length > 0);
      expect(Object.fromEntries(withHolds)).toEqual(Object.fromEntries(Object.entries(truth).filter(([, spans]) => spans.length > 0)));
      expect(lines.filter(({ event }) => event === "refused")).toHaveLength(refused);
      expect(JSON.stringify(lines)).not.toMatch(LEASE_ID);
      for (const { event, reason } of lines) seen.add(event === "refused" ? event : `${event} ${reason ?? ""}`.trim());
    });
    await fc.assert(property, { numRuns: sized({ quick: 50, slow: 300 }) });
    // Situations that the histories must reach; without them, the comparison would mean little.
    const wanted = [
      "granted",
      "replayed",
      "transferred",
      "breaking stuck",
      "refused",
      ...["released", "expired", "taken", "broken", "broken: stuck", "transferred", "cancelled"].map((reason) => `ended ${reason}`),
    ];
    expect([...seen]).toEqual(expect.arrayContaining(wanted));
  });

  const line = { namespace: "n", kind: "lock" as const, model: "ORDER", id: "1", principal: "p", requestId: "r" };
  const granted = (lease: string, fencingToken: number): LogLine => ({ ...line, event: "granted", lease, fencingToken, operateAtMs: 0 });
  const ended = (lease: string, fencingToken: number, heldMs = 0): LogLine => ({
    ...line,
    event: "ended",
    lease,
    fencingToken,
    operateAtMs: 0,
    heldMs,
  });
  it.each<[what: string, lines: readonly LogLine[]]>([
    ["two holders at once", [granted("a", 1), granted("b", 2)]],
    ["a token twice", [granted("a", 1), ended("a", 1), granted("b", 1)]],
    ["an end without a hold", [granted("a", 1), ended("a", 1), ended("a", 1)]],
    ["the end of another lease", [granted("a", 1), ended("b", 1)]],
    ["a hold of another length", [granted("a", 1), ended("a", 1, 5)]],
  ])("control: lines with %s are found out", (_what, lines) => {
    expect(() => rebuild(lines)).toThrow();
  });
});
