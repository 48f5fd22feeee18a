/** The parts of one history that its clients act on. */
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import type { FaultProfile } from "./faults.js";
import type { Network } from "./network.js";
import type { Oracle } from "./oracles/oracle.js";
import type { Watch } from "./oracles/wait-oracle.js";
import type { Random } from "./random.js";
import type { Process, World } from "./world.js";

/** A request that passes through many processes, which hold its key together. */
export interface Errand {
  readonly scope: string;
  readonly key: string;
}

/** One action of a client. */
export type Activity = (stage: Stage, actor: Actor) => Promise<void>;

/** The keys and options for the kinds of locks in one history. */
export interface Kinds {
  readonly items: readonly string[];
  readonly seats: number;
  readonly activities: readonly Activity[];
  /** True if a lease transferred to the id of a set is renewed, and so gets a holder, before the set is acquired. */
  readonly renewsFirst: boolean;
  /** The latest requests that other processes may still join. */
  readonly errands: Errand[];
}

/** A client in its own process. */
export interface Actor {
  readonly process: Process;
  readonly client: LockClient;
  /** Judges the client's waits. */
  readonly watch: Watch;
  /** `fetch` of that client, directly to the network. */
  readonly send: typeof fetch;
}

/** All parts of a history. */
export interface Stage {
  readonly world: World;
  readonly random: Random;
  readonly faultProfile: FaultProfile;
  readonly oracle: Oracle;
  readonly network: Network;
  readonly keys: readonly string[];
  /** The keys of runs. They are the same names as the locks', since a lock and a run never share a record. */
  readonly runKeys: readonly string[];
  readonly kinds: Kinds;
  /** Handles of detached leases that any client may attach. */
  readonly handles: string[];
  /** The time until which sessions start. */
  busyUntilMs: number;
  actor(index: number): Actor;
}
