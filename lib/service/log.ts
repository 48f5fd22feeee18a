/**
 * The log: one line per change of a key's holders and per refusal. From the lines you can reconstruct who held a key
 * when, and why others did not. A line never contains a whole leaseId, a scope or a request body.
 */
import { createHash } from "node:crypto";
import type { LeaseEvent } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import { leaseIdTimeMs } from "../core/lease-id.js";
import { partsOfKey } from "../core/key.js";
import { type Take, ratesText } from "../core/rate.js";
import type { Kind } from "../core/api/locks.js";
import { type Caller, digestOfPrincipal } from "./caller.js";

/** A line of the log. `lease` is a hash of the leaseId: the same for the same lease, and no proof of the hold. */
export interface LogLine {
  readonly event: LeaseEvent["event"] | "refused" | "shut";
  readonly namespace: string;
  readonly kind: "lock" | "run" | "limit";
  readonly model: string;
  readonly id: string;
  readonly operateAtMs: number;
  readonly owner?: string;
  /**
   * The lease's principal. For the caller's own lease it is in full. For another caller's lease it is the digest from
   * the record; the line of that lease's grant, with the same `lease`, has it in full. For a refusal it is the
   * caller's.
   */
  readonly principal: string;
  /** The caller's principal in full, where the lease is another caller's: the one that took it over, broke it, or got the transfer. */
  readonly by?: string;
  readonly requestId: string;
  readonly lease?: string;
  readonly fencingToken?: number;
  /** Time from the making of the leaseId to its grant, in ms; of a take, the time until it may start. */
  readonly waitedMs?: number;
  readonly heldMs?: number;
  /** Time from the end of the lease to the line, in ms, if it was over before anybody saw it: a part of `heldMs` in which nothing held. */
  readonly lapsedMs?: number;
  /** The lease's mode after a change of mode. */
  readonly mode?: LeaseEvent["mode"];
  /** The condition that a lease waits for, or whose notify put it into the queue. */
  readonly condition?: string;
  /** The place of a waiter that joined the queue; 1 is next. */
  readonly position?: number;
  /** For a take of a limit: its rates, as count/perMs/burst. */
  readonly rates?: string;
  /** For a take of a limit: the amount that it takes of each rate. */
  readonly cost?: number;
  /** For a limit that was shut: the time in ms until its next start. */
  readonly forMs?: number;
  /** For a run: the number of the attempt, and its outcome. */
  readonly attempt?: number;
  readonly outcome?: LeaseEvent["outcome"];
  /** For a run that failed: the name of its error, if it has one. */
  readonly errorName?: string;
  readonly reason?: string;
  /** It had happened before, and this request only repeated it, for example after a lost response. */
  readonly repeated?: true;
}

interface KeyOfKind {
  readonly kind: Kind | "limits";
  readonly key: string;
  /** The take, if it is a request to take from a limit. */
  readonly take?: Take;
}

/** Matches leaseIds in an engine's error message, which may quote anything; as they are stored too, which begin so until 2109. */
const LEASE_ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\B-[\w-]{21}(?![\w-])/g;

const MESSAGE_MAX_CHARS = 500;

/** Receives the lines. Must not throw; called after the write. */
export type Log = (line: LogLine) => void;

/** A log that drops all lines; the service does not make them. */
export const NO_LOG: Log = () => undefined;

/** Makes the line for an event of a lease of `key`. */
export function eventLine(of: KeyOfKind, event: LeaseEvent, caller: Caller, operateAtMs: number, reason?: string): LogLine {
  const { leaseId, event: name, ...rest } = event;
  const isOwn = event.principal === digestOfPrincipal(caller.principal);
  return {
    event: name,
    ...common(of, caller, operateAtMs),
    ...rest,
    ...(isOwn ? { principal: caller.principal } : { by: caller.principal }),
    ...(leaseId !== "" && { lease: hashLeaseId(leaseId) }),
    ...(name === "granted" && { waitedMs: Math.max(0, operateAtMs - leaseIdTimeMs(leaseId)) }),
    ...(reason !== undefined && { reason: [event.reason, reason].filter(Boolean).join(": ") }),
  };
}

/** Makes the line for a take that is granted, which starts in so many milliseconds. */
export function takeLine(of: KeyOfKind, caller: Caller, operateAtMs: number, startInMs: number): LogLine {
  return { event: "granted", ...common(of, caller, operateAtMs), principal: caller.principal, waitedMs: startInMs };
}

/** Makes the line for a refusal. */
export function refusalLine(
  request: KeyOfKind & { readonly leaseId?: string; readonly owner?: string | undefined },
  refusal: Refusal,
  caller: Caller,
  operateAtMs: number,
  cause?: string,
): LogLine {
  return {
    event: "refused",
    ...common(request, caller, operateAtMs),
    principal: caller.principal,
    ...(request.owner !== undefined && { owner: request.owner }),
    ...(request.leaseId !== undefined && { lease: hashLeaseId(request.leaseId) }),
    reason: [refusal.code, refusal.reason, cause].filter(Boolean).join(": "),
  };
}

/** Makes the line for the reset of a limit. */
export function resetLine(of: KeyOfKind, caller: Caller, operateAtMs: number, reason: string): LogLine {
  return { event: "reset", ...common(of, caller, operateAtMs), principal: caller.principal, reason };
}

/** Makes the line for a limit that was shut. */
export function shutLine(of: KeyOfKind, caller: Caller, operateAtMs: number, shut: Pick<LogLine, "forMs" | "reason">): LogLine {
  return { event: "shut", ...common(of, caller, operateAtMs), principal: caller.principal, ...shut };
}

const LINE_KIND = { locks: "lock", runs: "run", limits: "limit" } as const;

function common({ kind, key, take }: KeyOfKind, caller: Caller, operateAtMs: number) {
  const { namespace, requestId } = caller;
  const taken = take && { rates: ratesText(take.rates), cost: take.cost };
  return { namespace, kind: LINE_KIND[kind], ...partsOfKey(key), operateAtMs, requestId, ...taken } as const;
}

/**
 * Returns the part of an engine's message that may be printed: its first line, with every leaseId hashed. In the lines after it, AWS may
 * quote the whole request, with the session token and the signature.
 */
export function printableMessage(text: string): string {
  return withoutLeaseIds(text.split("\n", 1)[0] ?? "").slice(0, MESSAGE_MAX_CHARS);
}

/** Returns `text` with every leaseId hashed as in the log. */
export function withoutLeaseIds(text: string): string {
  return text.replace(LEASE_ID, hashLeaseId);
}

/** Hashes a leaseId: the hash distinguishes leases without revealing their ids. */
function hashLeaseId(leaseId: string): string {
  return createHash("sha256").update(leaseId).digest("hex").slice(0, 12);
}
