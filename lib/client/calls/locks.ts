/** The client calls of which jobs are made. They are written out here because `LockClient` has the jobs' own calls. */
import type { Inspection } from "../../core/lock/views.js";
import type { Lease } from "../hold/lease-types.js";
import type { AcquireOptions } from "./options.js";
import type { RunResult } from "./run/outcome.js";
import type { Run } from "./run/run-once.js";
import type { RunOptions } from "./run/run-options.js";
import type { Runs } from "./run/runs.js";

/** A client, as far as jobs use it. */
export interface Locks {
  withLock<T>(key: string, options: AcquireOptions, work: (lease: Lease) => Promise<T> | T): Promise<T>;
  runOnce<T>(idempotencyKey: string, options: RunOptions, work: (run: Run) => Promise<T> | T): Promise<RunResult<T>>;
  readonly runs: Pick<Runs, "get">;
  inspect(key: string): Promise<Inspection>;
}
