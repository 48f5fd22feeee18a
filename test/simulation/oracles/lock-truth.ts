/** The true history of a key: every lease that was granted, its share of the key, and how it ended. */
import type { Lease } from "../../../lib/client/hold/lease-types.js";
import type { LeaseSet } from "../../../lib/client/hold/lease-set.js";
import type { Run } from "../../../lib/client/calls/run/run-once.js";
import type { Kind } from "../../../lib/core/api/locks.js";
import type { Ending, Mode } from "../../../lib/core/record.js";
import type { Share } from "./sharing.js";

/** An end that left no tombstone. */
export type Unremembered = "collected" | "forgotten";

/** A lease as the table has it, since its grant or its latest change of mode. */
export interface Granted {
  readonly token: number;
  readonly share: Share;
  /** Its position among the grants and ends of the key. */
  readonly order: number;
}

/** The way in which a lease ended, and the true time of its end. */
export interface End {
  readonly ending: Ending | Unremembered;
  readonly atMs: number;
  /** Its position among the grants and ends of the key. */
  readonly order: number;
}

/** A key of a lock or of a run. The two never share a record. */
export interface Truth {
  readonly kind: Kind;
  readonly key: string;
  version: number;
  token: number;
  /** The token of the latest exclusive grant. */
  floor: number;
  readonly granted: Map<string, Granted>;
  /** The granted leases that are in the record now. */
  readonly holding: Set<string>;
  readonly endings: Map<string, End>;
  /** The ended leases, in the order of their ends. */
  readonly endOrder: string[];
  /** The expiry of each granted lease, by the grants and renewals that were seen. */
  readonly expiresAtMs: Map<string, number>;
  /** The number of grants and ends so far. */
  order: number;
  /** The largest token that the guarded resource has seen, and the latest grant that wrote to it. */
  written: number;
  writtenBy: Pick<Granted, "order" | "token">;
  wasCollected: boolean;
}

/** Returns a key without any events yet. */
export function newTruth(kind: Kind, key: string): Truth {
  const nothing = { version: 0, token: 0, floor: 0, order: 0, written: 0, writtenBy: { order: 0, token: 0 }, wasCollected: false };
  return { kind, key, ...nothing, granted: new Map(), holding: new Set(), endings: new Map(), endOrder: [], expiresAtMs: new Map() };
}

/** A lease, run or set that a client may treat as held. */
export type Believable = Pick<Lease | Run | LeaseSet, "isHeld" | "signal"> & { remainingMs?(): number };

/** A client that may treat its lease as held. */
export interface Believer {
  readonly truth: Truth;
  readonly leaseId: string;
  readonly of: Believable;
  /** The mode that the client assumes. Defaults to the table's mode. */
  readonly mode?: (() => Mode) | undefined;
}
