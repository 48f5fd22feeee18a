/** Lines of the log as lanes: for each lease of one key, its wait, its hold and its end, as a picture needs them. Pure. */
import { deedOf, reasonOf } from "./activity.js";
import type { KeyHolder, Line } from "./data.js";
import { tellsFailure } from "./text/run-text.js";

/** The ends of a lease, as a line names them. */
const ENDS = ["released", "expired", "taken", "broken", "transferred", "cancelled"] as const;
/** The end of a wait or of a hold. `unknown`: it is over, and no line says how. */
export type EndKind = (typeof ENDS)[number] | "skipped" | "unknown";

/** A time of waiting or holding. Without `toMs` it goes on. A hold has a token, and that of a run an attempt. */
interface Span {
  readonly fromMs: number;
  readonly toMs?: number;
  readonly fencingToken?: number | undefined;
  readonly attempt?: number | undefined;
}

/** A moment of a lane: an offer, a change of mode, a break that lets it drain, or a run's outcome. */
export interface Moment {
  readonly atMs: number;
  readonly kind: "offered" | "changed" | "breaking" | "recorded";
}

export interface LaneEnd {
  readonly atMs: number;
  readonly kind: EndKind;
  /** Set if the end isn't known: it was after this time, in epoch ms, and at `atMs` at the latest. */
  readonly afterMs?: number;
}

/** An operator's break of a hold. The hold may have ended otherwise before its lease did. */
export interface Broken {
  /** The operator's principal, if a line tells it. */
  readonly by?: string | undefined;
  /** The operator's words. */
  readonly why: string;
}

/** A lease. */
export interface Lane {
  /** The lease's hash, or the token of a hold whose grant no line shows. */
  readonly id: string;
  readonly owner: string;
  readonly wait?: Span | undefined;
  readonly hold?: Span;
  readonly end?: LaneEnd;
  readonly broken?: Broken;
  /** True for an attempt of a run that recorded a failure. */
  readonly hasFailed?: boolean;
  readonly moments: readonly Moment[];
}

/** A present holder. */
export type Present = Pick<KeyHolder, "fencingToken" | "owner" | "heldMs">;

/** Returns the lanes of one key from its lines, in the order of their beginnings. Lines of other keys must not be among them. */
export function lanesOf(lines: readonly Line[]): readonly Lane[] {
  const lanes = new Map<string, Lane>();
  for (const line of lines) {
    const { lease, event } = line;
    if (lease === undefined || event === "refused" || line.repeated) continue;
    const lane = lanes.get(lease) ?? { id: lease, owner: line.owner ?? "", moments: [] };
    lanes.set(lease, next(lane, line));
  }
  // A release of a lease that never was has neither a wait nor a hold.
  return Array.from(lanes.values())
    .filter(({ wait, hold }) => wait !== undefined || hold !== undefined)
    .sort((a, b) => beginning(a) - beginning(b));
}

/** Returns the time at which a lane begins, in epoch ms. */
export function beginning({ wait, hold }: Lane): number {
  return wait?.fromMs ?? hold?.fromMs ?? 0;
}

/** Returns the time at which a lane ended, in epoch ms; Infinity while it goes on. */
export function ending({ wait, hold, end }: Lane): number {
  return end?.atMs ?? hold?.toMs ?? (hold ? Infinity : (wait?.toMs ?? Infinity));
}

/** Returns the time that a picture shows at first: `spanMs`, or `all` if no lane is in that, but some are before it. */
export function firstSpan(lanes: readonly Lane[], spanMs: number, all: number, nowMs: number): number {
  return lanes.length > 0 && lanes.every((lane) => ending(lane) <= nowMs - spanMs) ? all : spanMs;
}

/** A lease as answers told it. */
export interface SeenLease {
  /** Its end, in epoch ms; 0 before the first answer. */
  readonly lastsUntilMs: number;
  /** The times of its renewals, in epoch ms. */
  readonly renewedAtMs: readonly number[];
}

/** The smallest shift of a lease's end that is a renewal, in ms. */
const RENEWED_MS = 250;

/**
 * Returns a lease after an answer that was asked for at `askedMs` and arrived at `atMs`, in epoch ms. The service told what is left at a time
 * in between: only an end that even an answer of `askedMs` would put later shows a renewal.
 */
export function withAnswer(
  { lastsUntilMs, renewedAtMs }: SeenLease,
  { remainingMs, leaseMs, heldMs }: Pick<KeyHolder, "remainingMs" | "leaseMs" | "heldMs">,
  { askedMs, atMs }: { readonly askedMs: number; readonly atMs: number },
): SeenLease {
  const untilMs = atMs + remainingMs;
  if (askedMs + remainingMs <= lastsUntilMs + RENEWED_MS) return { lastsUntilMs: Math.min(lastsUntilMs, untilMs), renewedAtMs };
  const isFirst = heldMs <= leaseMs - remainingMs + RENEWED_MS;
  return { lastsUntilMs: untilMs, renewedAtMs: isFirst ? renewedAtMs : [...renewedAtMs, untilMs - leaseMs] };
}

/** The knowledge of the end of a hold that is over, and that no line ends. */
export interface Gone {
  /** The end of its lease, if the service tells it, in epoch ms. */
  readonly lapsedAtMs?: number | undefined;
  /** The last time at which it was seen held, and the first at which it was not, in epoch ms. */
  readonly heldAtMs?: number;
  readonly goneAtMs?: number | undefined;
}

/**
 * Returns the lanes with the present holders among them, by their tokens: a holder without a line gets a lane, and a hold that goes on by
 * its lines but isn't present any more is over. `goneOf` tells what is known of that; what is not known stays open.
 */
export function withPresent(
  lanes: readonly Lane[],
  present: readonly Present[],
  nowMs: number,
  goneOf: (fencingToken: number) => Gone | undefined = () => undefined,
): readonly Lane[] {
  const shown = new Set(lanes.map(({ hold }) => hold?.fencingToken));
  const tokens = new Set(present.map(({ fencingToken }) => fencingToken));
  const closed = lanes.map((lane): Lane => {
    const { hold, moments } = lane;
    if (!hold || hold.toMs !== undefined || hold.fencingToken === undefined || tokens.has(hold.fencingToken)) return lane;
    const { lapsedAtMs, heldAtMs = 0, goneAtMs = nowMs } = goneOf(hold.fencingToken) ?? {};
    if (lapsedAtMs !== undefined) return { ...lane, hold: { ...hold, toMs: lapsedAtMs }, end: { atMs: lapsedAtMs, kind: "expired" } };
    const afterMs = Math.max(heldAtMs, hold.fromMs, ...moments.map(({ atMs }) => atMs));
    return { ...lane, hold: { ...hold, toMs: afterMs }, end: { atMs: goneAtMs, afterMs, kind: "unknown" } };
  });
  const others = present
    .filter(({ fencingToken }) => !shown.has(fencingToken))
    .map(({ fencingToken, owner, heldMs }): Lane => {
      return { id: String(fencingToken), owner, hold: { fromMs: nowMs - heldMs, fencingToken }, moments: [] };
    });
  return [...closed, ...others].sort((a, b) => beginning(a) - beginning(b));
}

/**
 * Returns the other keys of the set whose hold of `key` has this token, as far as lines tell: a set has one leaseId, so its lines have one hash.
 * A key whose hold has ended by the log is none of them. The record of a key doesn't know of any other.
 */
export function heldWith(key: string, fencingToken: number, lines: readonly Line[]): readonly string[] {
  const own = lines.filter((line) => line.kind === "lock" && line.key === key && line.fencingToken === fencingToken);
  const leases = new Set(own.map(({ lease }) => lease));
  const others = new Set<string>();
  for (const { kind, event, lease, key: other } of lines) {
    if (kind !== "lock" || other === key || lease === undefined || !leases.has(lease)) continue;
    if (event === "granted" || event === "replayed") others.add(other);
    if (event === "ended") others.delete(other);
  }
  return [...others].toSorted();
}

/** The largest number of waiters that have a lane each. */
const WAITERS = 6;

/**
 * Returns at most `most` lanes as a picture shows them from the top: the present holders, who waits now, then what is over, the latest first.
 * A long queue is one lane, so that it leaves room for the holds.
 */
export function arranged<T extends Lane>(lanes: readonly T[], most: number): readonly (T | Lane)[] {
  const holding = lanes.filter((lane) => lane.hold && ending(lane) === Infinity);
  const waiting = lanes.filter((lane) => !lane.hold && ending(lane) === Infinity);
  const over = lanes.filter((lane) => ending(lane) !== Infinity);
  const queue = { id: "waiting", owner: `${waiting.length} waiting`, wait: { fromMs: Math.min(...waiting.map(beginning)) }, moments: [] };
  return [...holding.toReversed(), ...(waiting.length > WAITERS ? [queue] : waiting), ...over.toReversed()].slice(0, most);
}

function next(lane: Lane, line: Line): Lane {
  const { event, atMs, fencingToken, attempt } = line;
  const owner = lane.owner || (line.owner ?? "");
  const hold = lane.hold ?? { fromMs: atMs, fencingToken, attempt };
  const waited = lane.wait && { ...lane.wait, toMs: atMs };
  switch (event) {
    case "queued":
    case "waiting":
      return { ...lane, owner, wait: lane.wait ?? { fromMs: atMs } };
    case "granted":
    case "transferred":
      return { ...lane, owner, hold, wait: waited ?? waitBefore(line) };
    case "replayed":
      return lane.hold || fencingToken === undefined ? lane : { ...lane, owner, hold };
    case "skipped":
      return { ...lane, owner, wait: waited, end: { atMs, kind: "skipped" } };
    case "ended":
      return ended({ ...lane, owner }, line);
    case "changed":
      // The lease goes on under another token.
      return withMoment(
        { ...lane, owner, ...(lane.hold && fencingToken !== undefined && { hold: { ...lane.hold, fencingToken } }) },
        line,
        event,
      );
    case "recorded":
      return withMoment({ ...lane, owner, ...(tellsFailure(line) && { hasFailed: true }) }, line, event);
    case "breaking":
      return withMoment({ ...lane, owner, broken: brokenBy(line) }, line, event);
    case "offered":
      return withMoment({ ...lane, owner }, line, event);
    case "shut":
    case "reset":
    case "refused":
      return lane;
  }
}

function withMoment(lane: Lane, { atMs }: Line, kind: Moment["kind"]): Lane {
  return { ...lane, moments: [...lane.moments, { atMs, kind }] };
}

function ended(lane: Lane, line: Line): Lane {
  const { atMs, reason = "", heldMs, lapsedMs = 0, fencingToken } = line;
  const kind: EndKind = ENDS.find((end) => end === reason.split(": ", 1)[0]) ?? "unknown";
  // A line is a little later than what it tells, so the earlier of two beginnings counts. A log may begin in the middle of a hold.
  const fromMs = Math.min(lane.hold?.fromMs ?? Infinity, heldMs === undefined ? Infinity : atMs - heldMs);
  if (fromMs < Infinity) {
    // A lease that ran out did so before the line.
    const end = { atMs: atMs - lapsedMs, kind };
    const hold = { ...lane.hold, fromMs, ...(fencingToken !== undefined && { fencingToken }), toMs: end.atMs };
    return { ...lane, hold, end, ...(deedOf(line) === "force" && { broken: brokenBy(line) }) };
  }
  const end = { atMs, kind };
  return lane.wait ? { ...lane, wait: { ...lane.wait, toMs: atMs }, end } : lane;
}

function brokenBy(line: Line): Broken {
  return { by: line.by, why: reasonOf(line) };
}

/** Returns the wait of a grant that no line of a queue precedes, if it took time: the caller asked again and again. */
function waitBefore({ event, atMs, waitedMs = 0 }: Line): Span | undefined {
  return event === "granted" && waitedMs >= SHORTEST_WAIT_MS ? { fromMs: atMs - waitedMs, toMs: atMs } : undefined;
}

/** The shortest time between the making of a leaseId and its grant that is shown as a wait, in ms: less is the way of the request. */
const SHORTEST_WAIT_MS = 200;
