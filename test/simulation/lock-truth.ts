/** A key as it really was: every lease that it was granted to, what each had of it, and how each ended. */
import type { Lease } from "../../lib/client/lease/lease.js";
import type { LeaseSet } from "../../lib/client/lease/lease-set.js";
import type { Run } from "../../lib/client/run/run-once.js";
import type { Kind } from "../../lib/core/api/locks.js";
import type { Ending, Mode } from "../../lib/core/record.js";
import type { Share } from "./sharing.js";

/** An end that left no trace in the ring. */
export type Unremembered = "collected" | "forgotten";

/** A lease as the table has it: since its grant or its latest change of mode. */
export interface Granted {
  readonly token: number;
  readonly share: Share;
  /** Its place among the grants and ends of the key. */
  readonly order: number;
}

/** How a lease ended, and when in true time. */
export interface End {
  readonly ending: Ending | Unremembered;
  readonly atMs: number;
  /** Its place among the grants and ends of the key. */
  readonly order: number;
}

/** A key of a lock or of a run, which never meet. */
export interface Truth {
  readonly kind: Kind;
  readonly key: string;
  version: number;
  token: number;
  /** The token of the latest grant that no other may stand beside. */
  floor: number;
  readonly granted: Map<string, Granted>;
  /** Those of the granted that are in the record now. */
  readonly holding: Set<string>;
  readonly endings: Map<string, End>;
  /** In the order of their ends. */
  readonly endOrder: string[];
  /** When each of the granted runs out, by the grant and the renewals that were seen. */
  readonly expiresAtMs: Map<string, number>;
  /** Grants and ends so far. */
  order: number;
  /** The largest token that the guarded resource has seen, and the latest grant that wrote to it. */
  written: number;
  writtenBy: Pick<Granted, "order" | "token">;
  wasCollected: boolean;
}

/** Nothing happened to the key yet. */
export function newTruth(kind: Kind, key: string): Truth {
  const nothing = { version: 0, token: 0, floor: 0, order: 0, written: 0, writtenBy: { order: 0, token: 0 }, wasCollected: false };
  return { kind, key, ...nothing, granted: new Map(), holding: new Set(), endings: new Map(), endOrder: [], expiresAtMs: new Map() };
}

/** What may be believed in. */
export type Believable = Pick<Lease | Run | LeaseSet, "isHeld" | "signal"> & { remainingMs?(): number };

/** Somebody who may believe that its lease holds. */
export interface Believer {
  readonly truth: Truth;
  readonly leaseId: string;
  readonly of: Believable;
  /** As what it believes to hold; by default as the table says. */
  readonly mode?: (() => Mode) | undefined;
}
