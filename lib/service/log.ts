/**
 * The log: one line per change of who holds a key, and per refusal, from which one can rebuild who held
 * what when, and why the others did not. Never a whole leaseId, a scope or a request body.
 */
import { createHash } from "node:crypto";
import type { LeaseEvent } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import { leaseIdTimeMs } from "../core/lease-id.js";
import { partsOfKey } from "../core/key.js";
import type { Kind } from "../core/api/locks.js";
import type { Caller } from "./caller.js";
import { digestOfPrincipal } from "./caller.js";

/** One line. `lease` is a hash of the leaseId: the same lease has the same hash, and it proves nothing. */
export interface LogLine {
  readonly event: LeaseEvent["event"] | "refused";
  readonly namespace: string;
  readonly kind: "lock" | "run";
  readonly model: string;
  readonly id: string;
  readonly operateAtMs: number;
  readonly owner?: string;
  /**
   * The lease's: in full where it is the caller's own; of another's lease the digest that its record keeps, and the line
   * of its grant, with the same `lease`, has it in full. Of a refusal, the caller's.
   */
  readonly principal: string;
  /** Who asked, in full, where the lease is somebody else's: who took it over, broke it, or holds what was handed on. */
  readonly by?: string;
  readonly requestId: string;
  readonly lease?: string;
  readonly fencingToken?: number;
  /** From the making of the leaseId to its grant. */
  readonly waitedMs?: number;
  readonly heldMs?: number;
  /** What a change of mode made of the lease. */
  readonly mode?: LeaseEvent["mode"];
  /** Of one that joined a queue: its place in it, 1 being next. */
  readonly position?: number;
  /** Of a run: which attempt, and what came of it. */
  readonly attempt?: number;
  readonly outcome?: LeaseEvent["outcome"];
  readonly reason?: string;
  /** It had happened before; this request only asked again, as one does whose answer was lost. */
  readonly repeated?: true;
}

/** A key, and what it names. */
interface KeyOfKind {
  readonly kind: Kind;
  readonly key: string;
}

/** Nobody knows what an engine quotes in its errors. */
const LEASE_ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Where lines go. Must not throw; called after the write. */
export type Log = (line: LogLine) => void;

/** The line for something that happened to a lease of `key`. */
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

/** The line for a refusal. */
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

function common({ kind, key }: KeyOfKind, caller: Caller, operateAtMs: number) {
  const { namespace, requestId } = caller;
  return { namespace, kind: kind === "runs" ? "run" : "lock", ...partsOfKey(key), operateAtMs, requestId } as const;
}

/** What an engine said, each leaseId in it as the log has it. */
export function withoutLeaseIds(text: string): string {
  return text.replace(LEASE_ID, hashLeaseId);
}

/** Tells leases apart without telling what they are. */
function hashLeaseId(leaseId: string): string {
  return createHash("sha256").update(leaseId).digest("hex").slice(0, 12);
}
