/** The data of the console as its pages read them: the JSON of each path below `/console/api/`. Pure types, for the server and the browser. */
import type { Inspection, RunView } from "../../lib/index.js";
import type { LogLine } from "../../lib/dynamodb.js";

/** The service behind the console, and the rights of its user. */
export interface About {
  readonly version: string;
  /** The address of the service, or the name of the table. */
  readonly where: string;
  /** True if holds may be broken and runs reset. */
  readonly canChange: boolean;
  /** The interval of the list's requests, in ms. A page about one key polls at least every 2 s. */
  readonly pollMs: number;
  /** The time from which the log is known, in epoch ms. Absent: there is no log here. */
  readonly logFromMs?: number;
  /** The options with which the command line finds the same locks, such as `--url https://…`. */
  readonly cliOptions?: string;
}

/** A line of the log without ids of requests and callers' principals. `lease` is a hash, as in the log. */
export type Line = Omit<LogLine, "namespace" | "model" | "id" | "operateAtMs" | "principal" | "by" | "requestId"> & {
  /** Its position in the log; each line has a higher one than the line before. */
  readonly seq: number;
  readonly key: string;
  readonly atMs: number;
  /** The principal of the operator who broke the hold or reset the run; on no other line. */
  readonly by?: string;
};

/** The log's lines after a position. */
export interface Lines {
  readonly lines: readonly Line[];
  /** The position to continue from. */
  readonly next: number;
  /** The time from which no line is missing, in epoch ms. */
  readonly fromMs: number;
}

/** The first keys of a list. */
export interface Listed<T> {
  readonly items: readonly T[];
  /** True if there are more, or may be. */
  readonly more: boolean;
  /** The key behind which no key was looked at, if the look ended at its largest number of requests. */
  readonly unreadFrom?: string;
  /** The requests that the look took. The next one waits as many intervals. */
  readonly requests: number;
  readonly namespace?: string;
}

/** The parts that a key was made from, if they don't show in it. */
interface Parts {
  readonly parts?: string;
}

/** A key with its holders and waiters. */
export type KeyView = Inspection & Parts;

/** A run, with its values as JSON text if it was asked for by itself. */
export type RunOfKey = Omit<RunView, "version" | "checkpoint" | "result" | "error"> &
  Parts & {
    readonly checkpoint?: string;
    readonly result?: string;
    readonly error?: string;
  };

/** The history of a key that is not in a log of the console's own. */
export interface History {
  /** The query of CloudWatch Logs Insights that finds it. */
  readonly query: string;
  /** The log group, if it is known. */
  readonly logGroup?: string;
  /** True if the console may run the query. */
  readonly canRun: boolean;
  /** The query's lines, if it ran. */
  readonly lines?: readonly Line[];
}

/** A refusal or failure. */
export interface Failure {
  /** A code of the service or the SDK, or `console` for a refusal by the console itself. */
  readonly code: string;
  readonly message: string;
}
