/**
 * Formats failures in one or two lines with an exit status: what happened, whether the change may have been made, and advice. The refusal's
 * own fields decide that, not just the type of the error.
 */
import type { LockError } from "../lib/index.js";
import { CODES, CliError, INTERRUPTED, Interrupted } from "./cli-error.js";
import { type Where, AWS_SETTINGS } from "./connection.js";
import { formatDuration } from "../console/text/duration.js";
import { type ExitName, EXITS, statusOfSignal } from "./exit-codes.js";
import { plain, plainJson } from "../console/text/plain-text.js";
import { isWrongAddress, NOT_THE_SERVICE } from "../console/text/wrong-address.js";
import { DEV_PORT } from "./serve/commands.js";

/** A failure as reported to the user. */
export interface Failure {
  readonly status: number;
  /** A code of the service, the SDK or the command line. */
  readonly code: string;
  readonly message: string;
  /** The advice; `""` if there is none. */
  readonly next: string;
  readonly definite: boolean;
}

/** The status of an error by its advice. A code of a newer service has no other. */
const EXIT_BY_ADVICE = { never: "refused", later: "notGot", same: "unavailable", "new-lease": "unavailable" } as const satisfies Record<
  LockError["retry"],
  ExitName
>;

/** The codes whose status is another than that of their advice. */
const CODES_OF: Readonly<Partial<Record<ExitName, readonly string[]>>> = {
  usage: ["invalid-request", "too-large"],
  forbidden: ["forbidden"],
  notFound: ["not-found"],
  notGot: ["contended"],
  lost: ["lease-lost"],
  unavailable: ["throttled", "clock-skew", "newer-format", "unavailable"],
  config: ["not-configured", "older-format", "clock-unknown"],
  notKept: ["result-omitted"],
  internal: ["internal", "method-not-allowed", "unsupported-media-type"],
};
const EXIT_OF = new Map(Object.entries(CODES_OF).flatMap(([exit, codes]) => codes.map((code) => [code, exit as ExitName])));

/** The command-line options that have the names of the SDK. */
const SAME_NAMES = ["url", "limit", "permits", "priority", "cost", "concurrent", "owner", "max", "namespace", "reason"];
/** All options, by their names in the SDK. */
const OPTIONS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(SAME_NAMES.map((name) => [name, `--${name}`])),
  tableName: "--table",
  leaseMs: "--lease",
  waitMs: "--wait",
  keepResultMs: "--keep",
  everyMs: "--tick",
  maxAttempts: "--max-attempts",
  drainMs: "--drain",
  fencingToken: "--token",
  rates: "--rate",
  count: "--rate",
  perMs: "--rate",
  burst: "--rate",
  key: "KEY",
};

/** The purpose of the failed command: run a command, change something, or only read. */
export type CommandMode = "runs" | "changes" | "reads";

/** Returns the failure for any thrown value, of the command named `command` with the locks at `where`. */
export function failureOf(error: unknown, mode: CommandMode, where?: Where, command = ""): Failure {
  if (error instanceof CliError) {
    const { status, code, message, next } = error;
    return { status, code, message, next, definite: true };
  }
  if (error instanceof Interrupted) {
    const { message, by } = error;
    const definite = mode !== "changes";
    return { status: statusOfSignal(by), code: INTERRUPTED, message, next: definite ? "" : PERHAPS_DONE, definite };
  }
  if (isOfTheSdk(error)) {
    const exit = exitOf(error);
    const message = inOptions(ofCommand(error.message, command)) + fromWhere(error, where);
    const code = exit === "config" ? CODES.config : error.code;
    return { status: EXITS[exit].status, code, message, next: nextFor(exit, error, mode, where), definite: error.definite };
  }
  const message = (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? "";
  if ((error as NodeJS.ErrnoException | undefined)?.code === "ERR_ACCESS_DENIED")
    return {
      status: EXITS.config.status,
      code: CODES.config,
      message: `Node's permission model: ${message}`,
      next: PERMISSIONS,
      definite: true,
    };
  return { status: EXITS.internal.status, code: CODES.internal, message, next: "This is a defect of holdfast.", definite: false };
}

/** Formats the failure as lines of text, or as one line of JSON. */
export function formatFailure({ status, code, message, next, definite }: Failure, asJson: boolean): string {
  if (asJson) return plainJson({ error: { status, code, message, definite, ...(next !== "" && { next }) } });
  return [`holdfast: ${plain(message)}`, ...(next === "" ? [] : [plain(next)])].join("\n");
}

function isOfTheSdk(error: unknown): error is LockError {
  return error instanceof Error && typeof (error as Partial<LockError>).code === "string" && "definite" in error && "retry" in error;
}

/** Returns where no answer came from, which the SDK's message doesn't say if a time limit was reached. */
function fromWhere({ message }: LockError, { url, table }: Partial<Where> = {}): string {
  const from = table === undefined ? url : `the table ${table}`;
  return from !== undefined && message.endsWith("no answer in time") ? ` from ${from}` : "";
}

const PERHAPS_DONE = "It may have been done or not. Look before you do it again: it may end, or forget, what came since.";
/** The table's messages if it is not one of holdfast's; otherwise the region or the credentials are wrong. */
const WRONG_TABLE = /ResourceNotFoundException|AccessDeniedException|schema/;

/** Returns the status's name. A wrong URL counts as a wrong configuration. */
function exitOf(error: LockError): ExitName {
  if (isWrongAddress(error)) return "config";
  return EXIT_OF.get(error.code) ?? EXIT_BY_ADVICE[error.retry];
}

function nextFor(exit: ExitName, error: LockError, mode: CommandMode, where: Where | undefined): string {
  const { definite } = error;
  if (exit === "config") {
    const mend = correctionFor(error, where);
    return mode === "runs" ? `The command was not run. ${mend}` : mend;
  }
  if (exit === "usage") return "See holdfast --help, or --help after a command.";
  const later = exit === "unavailable" || exit === "internal" || exit === "notGot" ? " Try again later." : "";
  const retry = error.code === "clock-skew" ? OF_CLOCKS[where?.table === undefined ? "service" : "table"] : (NEXT_OF[error.code] ?? later);
  const rights = exit === "forbidden" ? ` ${where?.hasToken ? OF_SCOPES : OF_SIGNATURES}` : "";
  const then = retry + rights + howToStart(error, where);
  if (mode === "reads") return then.trim();
  if (mode === "runs") return exit === "notKept" ? "" : `The command was not run.${then}`;
  return definite ? `Nothing was changed.${then}` : PERHAPS_DONE;
}

const OPERATORS = "Operators' commands (ls, watch, runs, ticks, limits, break, reset, ui)";
const OF_SIGNATURES = `Is the request signed (--sign), by somebody who may do that? ${OPERATORS} need grantAdmin.`;
const OF_SCOPES = `Does the token have a scope for that? ${OPERATORS} need an admin scope: locks:admin, if the deployment names no other.`;
const OF_TOKENS =
  "Is the token over, or of another issuer or audience than the API's? HOLDFAST_BEARER_TOKEN is read once; the file of --token-file is read again for each request.";

const NO_OPERATORS =
  "Has this service tenants, and operators of them (grantOperator, or operatorScopes)? Without, name the tenant straight on the table: --table NAME --namespace NAME.";

const PERMISSIONS =
  "holdfast needs --allow-fs-read for its own files; lock, once, limit and dev with a command also need --allow-child-process.";
const NEXT_OF: Readonly<Partial<Record<string, string>>> = {
  "limit-mismatch":
    " All who use a name give the same --limit, or the same --rate. Give that, or change it when nobody uses the name (holdfast show KEY; rates: holdfast limits reset NAME).",
};
/** The advice on a clock that is wrong: straight on a table it is this machine's, and it doesn't mend itself. */
const OF_CLOCKS = { table: " Correct this machine's clock.", service: " Try again later. If it lasts, a clock of the service is wrong." };

/** The hosts of a service on this machine. */
const LOCAL_HOSTS: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** Returns how to start a service at `url`, if it is on this machine and nothing listens there; else `""`. */
function howToStart({ message }: LockError, { url }: Partial<Where> = {}): string {
  if (url === undefined || !message.includes("(ECONNREFUSED)")) return "";
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== "http:" || !LOCAL_HOSTS.includes(hostname)) return "";
  return ` Start one, which has no lock yet, with: holdfast dev${port === String(DEV_PORT) ? "" : ` --port ${port || "80"}`}`;
}

/** The corrections, by what the SDK says: the first row whose words are in the message. */
const CORRECTIONS: readonly (readonly [said: RegExp, onUrl: string, onTable: string])[] = [
  [
    /certificate of \S+ is not trusted/,
    ...twice("Is it of an authority of your own, or of a proxy that opens TLS? Name the file of that authority in NODE_EXTRA_CA_CERTS."),
  ],
  [
    NOT_THE_SERVICE,
    "Correct --url or HOLDFAST_URL, or the proxy before it.",
    "Correct --region, AWS_ENDPOINT_URL_DYNAMODB or AWS_ENDPOINT_URL, or the proxy before the table.",
  ],
  [/Region is missing/, ...twice("Give --region, or set AWS_REGION.")],
];

function twice(text: string): readonly [string, string] {
  return [text, text];
}

function correctionFor(error: LockError, where: Partial<Where> = {}): string {
  const { code, message } = error;
  const { url, table, hasToken, namespace } = where;
  if (code === "not-found" && namespace !== undefined) return NO_OPERATORS;
  if (/\bnamespace: "/.test(message)) return "Give the namespace by --namespace or HOLDFAST_NAMESPACE, or leave it out.";
  if (code === "not-found") return `Is ${url ?? "that"} the URL of the API? Its path is the stage, or empty.`;
  const start = howToStart(error, where).trim();
  if (start !== "") return start;
  const [, onUrl, onTable] = CORRECTIONS.find(([said]) => said.test(message)) ?? [];
  if (onUrl !== undefined && onTable !== undefined) return table === undefined ? onUrl : onTable;
  if (table === undefined) return hasToken ? OF_TOKENS : `Is the request signed (--sign), or is there a bearer token? ${AWS_SETTINGS}`;
  return WRONG_TABLE.test(message)
    ? `Is there a table ${table} for holdfast in this Region, and may these credentials use it?`
    : AWS_SETTINGS;
}

const IN_MILLISECONDS = /(\d+) given; it is a whole number of ms (?:of at least|from) (\d+)(?: to (\d+))?/;

/** The SDK's operations at the beginning of a message, before a key. */
const BEFORE_KEY = /^(?:acquire|run|inspect|reset|forceRelease|take from)(?= )/;
/** Those without a key. For the commands that run another, the same words are keys. */
const ALONE = /^(?:list|runs)(?=: )/;
/** The commands that run another. */
export const RUNNING: readonly string[] = ["lock", "once", "limit"];

/** Names the command that was typed, in place of the SDK's operation. */
function ofCommand(message: string, command: string): string {
  if (command === "") return message;
  const named = message.replace(BEFORE_KEY, command);
  return RUNNING.includes(command) ? named : named.replace(ALONE, command);
}

/**
 * Names a valid key in place of the SDK's call that makes it from these parts; nothing if the message doesn't have them all, or one has
 * characters that the call would escape.
 */
function keyFrom(parts: string): string {
  if (parts.startsWith("...")) return "";
  const key = (JSON.parse(`[${parts}]`) as (string | number)[]).join("_");
  return /^[\w.:-]+$/.test(key) ? `; ${key} is one` : "";
}

/** Numbers of at least a second: below, people read ms as well. */
const LONG_MS = /\b(\d{4,}) ms\b/g;

/** Rewrites the SDK's option names into those of the command line, and long times into words. */
function inOptions(message: string): string {
  return message
    .replace(/; key\((.*)\) makes one$/, (_, parts: string) => keyFrom(parts))
    .replace(/^(\w+):/, (whole, field: string) => (OPTIONS[field] === undefined ? whole : `${OPTIONS[field]}:`))
    .replace(IN_MILLISECONDS, (_, ms: string, from: string, to?: string) => {
      const bounds = to !== undefined ? ` from ${formatDuration(Number(from))} to ${formatDuration(Number(to))}` : "";
      return `${formatDuration(Number(ms))} given; it must be a duration${bounds}`;
    })
    .replace(LONG_MS, (_, ms: string) => formatDuration(Number(ms)));
}
