/** The data of the console as its pages read them: the JSON of each path below `/console/api/`. Pure types, for the server and the browser. */
import type { Inspection, LimitView, RunView } from "../lib/index.js";
import type { LogLine } from "../lib/dynamodb.js";
import type { LastOf } from "./schedules.js";

/** The service behind the console, and the rights of its user. */
export interface About {
  readonly version: string;
  /** The service's time as it answered, in epoch ms. */
  readonly serverTimeMs: number;
  /** The address of the service, or the name of the table. */
  readonly where: string;
  /** The host of the service that answered, or the Region. Absent: there is only one. */
  readonly door?: string | undefined;
  /** True if holds may be broken, and runs and limits reset. */
  readonly canChange: boolean;
  /** The interval of the list's requests, in ms. A page about one key polls at least every 2 s. */
  readonly pollMs: number;
  /** The time from which the log is known, in epoch ms. Absent: there is no log here. */
  readonly logFromMs?: number | undefined;
  /** The options with which the command line finds the same locks, such as `--url https://…`. */
  readonly cliOptions?: string | undefined;
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

/** The answer to a look at a list. */
export interface ListData<T> {
  /** The first rows of those that fit the search, in the order that was asked for. */
  readonly items: readonly T[];
  /** The number of those that fit. */
  readonly fits: number;
  /** The number of keys that were read, in the order of their names. */
  readonly read: number;
  /** True if there are more than were read, or may be. */
  readonly more: boolean;
  /** True if the page reads on by itself: with the next look, which it sends at once. */
  readonly readsOn: boolean;
  /** The requests that the look took. The next one waits as many intervals. Absent: they are free. */
  readonly requests?: number | undefined;
}

/** The held keys: the rows that fit, and what there is to say about all that were read. */
export interface LocksData extends ListData<KeyView> {
  readonly namespace?: string | undefined;
  readonly figures: {
    readonly held: number;
    /** The callers in the queues, and the number of these queues. */
    readonly waiting: number;
    readonly waitedFor: number;
    /** The holders that didn't renew in time. */
    readonly late: number;
    /** The leases that ran out in the last day, and whose end no line of the log tells yet. Absent: there is no log here. */
    readonly ranOut?: readonly Untold[];
  };
  /** The keys that need a look, the longest wait first: as many as a person reads. */
  readonly looks: readonly KeyView[];
  /** The number of all keys that need a look. */
  readonly looksInAll: number;
}

/** A lease that ran out and that no request has met since, so that no line of the log tells its end. */
export interface Untold {
  readonly key: string;
  /** The lease's hash, as in the log. */
  readonly lease: string;
  /** The time since it ran out, in ms. */
  readonly agoMs: number;
}

/** The runs that need a look, in the order of their keys. */
export interface Exhausted {
  /** Those that have used up the attempts that callers make by default, and are refused until a reset. The first few have their error. */
  readonly items: readonly RunOfKey[];
  /** Those that stay unfinished until somebody starts them again. */
  readonly interrupted: readonly RunOfKey[];
  /** True if there are more that have used up their attempts, or may be. */
  readonly more: boolean;
  /** True if not all runs were read that may be among these. */
  readonly isPart: boolean;
  readonly requests?: number | undefined;
}

/** The parts that a key was made from, if they don't show in it. */
export interface Parts {
  readonly parts?: string | undefined;
}

/** A key with its holders and waiters. */
export type KeyView = Inspection & Parts;
export type KeyHolder = KeyView["holders"][number];
export type KeyWaiter = KeyView["waiters"][number];

/** A limit in use: what is left of its rates, its permits that are out, or both. */
export interface LimitInUse extends Partial<Omit<LimitView, "key">> {
  readonly key: string;
  /** Its permits that are out, of how many, and the callers that wait for one. */
  readonly permits?: { readonly out: number; readonly of: number; readonly waiting: number };
}

/** A limit in use, with its parts. */
export type LimitOfKey = LimitInUse & Parts;

/** A limit by its name. */
export interface LimitData {
  /** `null`: it is not in use. */
  readonly limit: LimitOfKey | null;
  /** The lock of its name, whose permits are the limit's; `null` if nobody uses it. */
  readonly lock: KeyView | null;
  readonly requests?: number | undefined;
}

/** A run, with its values as JSON text if it was asked for by itself. In a list it may stand for all occurrences of its schedule. */
export type RunOfKey = Omit<RunView, "version" | "checkpoint" | "result" | "error"> &
  Parts &
  LastOf & { readonly checkpoint?: string | undefined; readonly result?: string | undefined; readonly error?: string | undefined };

/** A run by its key. */
export interface RunData {
  readonly run: RunOfKey | null;
  /** True if the key has no run, but is the name of a schedule whose occurrences have. */
  readonly isSchedule?: boolean;
  readonly requests?: number | undefined;
}

/** The occurrences of a schedule, in order. */
export interface ScheduleData {
  readonly items: readonly RunOfKey[];
  /** True if there are older ones in the time that was asked for, or may be: they were not read. */
  readonly more: boolean;
  readonly requests?: number | undefined;
}

/** The history of a key that is not in a log of the console's own. */
export interface History {
  /** The query of CloudWatch Logs Insights that finds it. */
  readonly query: string;
  /** The log group, if it is known. */
  readonly logGroup?: string;
  /** True if the console may run the query. */
  readonly canRun: boolean;
  /** The query's lines, if it ran. */
  readonly lines?: readonly Line[] | undefined;
}

/** A refusal or failure. */
export interface ApiFailure {
  /** A code of the service or the SDK, `console` for a refusal by the console itself, `no-answer` if something else than holdfast answered. */
  readonly code: string;
  readonly message: string;
  /** The HTTP status with which the service or a gateway before it answered. Absent: nothing answered, or it isn't known. */
  readonly status?: number | undefined;
  /** Advice on what the user may do next; absent if there is nothing to say. */
  readonly next?: string | undefined;
}
