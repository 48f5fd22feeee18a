/** The generated parts of docs/errors.md, generated from the registry, from the SDK's own classes and from the errors that its sources throw. */
import { type LockLostError, errorOf, LockError } from "../../lib/client/wire/errors.js";
import { type ErrorCode, ERRORS, refuse } from "../../lib/core/errors.js";
import { sourcesIn } from "../tidy/tree.js";
import { table } from "./generated.js";

/** Advice for each error code. The type makes it complete. */
const ADVICE: Readonly<Record<ErrorCode, string>> = {
  "invalid-request": "Correct the field that `field` names. The SDK checks most rules before it sends anything",
  forbidden: "Ask as the principal that acquired the lease, or have the missing permission for the path and the key granted",
  "not-found": "Check the path and the key: nothing holds the key, or the run doesn't exist",
  "method-not-allowed": "Use a method that the header `Allow` names",
  "limit-mismatch":
    "Use the same `limit` for all users of a key, and the same `rates` for all users of a limit. They can't change while the key is in use, or before the limit is full again",
  "run-in-progress": "Wait `retryAfterMs`, or send `Prefer: wait`. `runOnce` waits by itself, then throws `LockTimeoutError`",
  "attempts-exhausted":
    "Find out why the work keeps failing; then `runs.reset`, or start with a larger `maxAttempts`. A declined card is an outcome: throw `FinalError`",
  "outcome-differs": "Keep the outcome that was recorded first: all callers get it",
  "upgrade-conflict": "Release the shared lease and acquire an exclusive one: two readers that both wait to upgrade would wait for ever",
  "not-exclusive": "Wait and notify under an exclusive lease without other levels of its scope: nothing changed, and the lease still holds",
  "token-mismatch": "An earlier change of mode arrived before this one: read the current token with `GET` under the leaseId",
  "lease-lost": "Stop. Work since the last check may overlap with another holder's; `reason` says how it was lost",
  "lease-over": "Send the request under a new leaseId. The cause is a late duplicate, or a reused id",
  "other-hold": "Nothing changed: the named hold is over. Check the current holder before you break that hold",
  "too-large": "Send less: store large data elsewhere, and a reference here",
  "unsupported-media-type": "Send `content-type: application/json`",
  "lease-reused": "Send the request under a new leaseId, or repeat the first one unchanged. Each acquire needs a leaseId of its own",
  "fingerprint-mismatch": "Give each piece of work an idempotency key of its own",
  "lease-id-time": "Make the UUIDv7 right before you send it, by a correct clock; `serverTimeMs` is the service's. The SDK corrects it",
  locked: "Come back after `retryAfterMs`, or wait in the queue (`Prefer: wait`). In the SDK it is no error: `tryAcquire` returns `null`",
  "rate-limited": "Come back after `retryAfterMs`, or give the take a `waitMs`. Nothing was taken. In the SDK it is a `LimitExceededError`",
  "queue-full":
    "Come back after `retryAfterMs`, under the same leaseId: its time shows how long you have waited, and the oldest come first. If it happens often: shorter holds, or more keys (segments). In the SDK `acquire` asks again until its wait is over, and then throws `LockTimeoutError`",
  "key-full":
    "Come back later. If it happens often: shorter owners, less `meta`, or more keys (segments). In the SDK `tryAcquire` and `tryAcquireAll` throw it; `acquire` asks again until its wait is over, and then throws `LockTimeoutError`",
  contended:
    "Send the same request again, as the SDK does until its time is over: a wait then ends in `LockTimeoutError`. It is no outage, since others use the key; if it repeats, use more keys (segments)",
  throttled:
    "The table or the gateway refused it, and nothing happened. The SDK asks again until its time is over, heartbeats and releases sooner than others. Slow down and retry later; alarm if it persists",
  "not-configured":
    "Correct the part that the message names: the table and its keys, the region, the credentials and their permissions, or the namespace. No wrapper proceeds past it",
  internal: "Send the same request again, with the same leaseId. If it repeats, the service's log has the cause",
  "clock-unknown":
    "Let the `Date` of DynamoDB's answers through, which a proxy may remove or send twice; in a function, the event's `requestContext.timeEpoch`. By one clock alone nothing is decided, so no wrapper proceeds past it",
  "clock-skew": "Wait. If it persists, a server's clock is wrong, or the process's own if the client is straight on the table",
  "older-format":
    "Let the work of the older version end, then deploy this one with a new table, or go back to the older version ([upgrading](upgrading.md#a-new-format-number))",
  "unreadable-record":
    "Nobody can use the key: the message names the item and the attribute. Find out who wrote it, and restore the item or delete it by hand once nobody holds the key. It may have happened if the attribute is one that the decision doesn't need",
  "newer-format": "Deploy this side too: another one already writes a newer format ([upgrading](upgrading.md#a-new-format-number))",
  unavailable: "Send the same request again, with the same leaseId. It may have happened, unless `definite` says otherwise",
};

/** The same for the codes that only the client uses. */
const CLIENT_ADVICE: Readonly<Record<string, readonly [sentence: string, advice: string]>> = {
  closed: ["The client was closed before or during the call", "Close a client when nothing uses it any more"],
  "invocation-ends": [
    "The Lambda invocation has no time left to hold the key",
    "Nothing is held: let a later invocation do it. A longer time limit of the function, or a shorter `waitMs`, leaves time for the work",
  ],
  "result-omitted": [
    "The run succeeded, and its result could not be stored",
    'Don\'t repeat the work: it is done. Return less than 256 KB of JSON, or set `largeResult: "omit"`',
  ],
  "run-failed": [
    "The run failed for good in an earlier call; this is its replay",
    "Read `cause`; the function was not called. `runs.reset` allows a new first attempt",
  ],
  "wait-timeout": [
    "The key did not become free within `waitMs`",
    "Nothing is held and nothing is left behind: tell the user, or retry. `holders`, `position` and `waitedMs` say for whom and how long it waited",
  ],
};

const REASONS: Readonly<Record<LockLostError["reason"], string>> = {
  expired: "it ran out, and nobody was granted the key since",
  taken: "it ran out, and another was granted the key",
  broken: "an operator ended it",
  released: "it was released",
  transferred: "it was transferred to another",
  never: "that leaseId holds nothing here",
  deadline: "no renewal landed in time: the network, the service, or a frozen process",
  "max-hold": "it was held for its `maxHoldMs`",
  "no-progress": "its work showed no progress for its `progressMs`",
  restored: "the process went on from a snapshot of Node, and another may have too",
  "invocation-ends": "the Lambda invocation has no time left",
  closed: "the client was closed",
};

interface Thrown {
  readonly code: string;
  readonly definite: string;
  readonly retry: string;
  readonly type: string;
}

const THROWN = /code: "([\w-]+)",\s*definite: (\w+),\s*retry: "([\w-]+)"/g;
const TYPES = /(?:new|class) (\w+Error)\b/g;

/** The errors that the client's sources throw with their own codes. */
function thrownByTheClient(): readonly Thrown[] {
  return sourcesIn("lib/client/").flatMap(({ text }) =>
    [...text.matchAll(THROWN)].map(({ index, 1: code = "", 2: definite = "", 3: retry = "" }) => {
      const type = [...text.slice(0, index).matchAll(TYPES)].at(-1)?.[1] ?? "";
      return { code, definite, retry, type };
    }),
  );
}

/** The codes that only the client uses. @throws Error if one of them is not explained here. */
export function clientCodes(): readonly Thrown[] {
  const own = thrownByTheClient().filter(({ code }) => !(code in ERRORS));
  const unexplained = own.filter(({ code }) => !(code in CLIENT_ADVICE));
  if (unexplained.length > 0) throw new Error(`Not explained: ${unexplained.map(({ code }) => code).join(", ")}`);
  // A code that is thrown in several places is not definite if it isn't so in one.
  const codes = [...new Set(own.map(({ code }) => code))].toSorted();
  return codes.map((code) => own.find((one) => one.code === code && one.definite !== "true") ?? own.find((one) => one.code === code)!);
}

interface Explained {
  readonly code: string;
  /** Absent for a code of the client alone. */
  readonly status?: number;
  readonly definite: boolean;
  readonly retry: string;
  readonly type: string;
  readonly meaning: string;
  readonly advice: string;
}

/** A code under a heading of its own, to which a link can lead: its meaning, its fields, and what to do. */
function section({ code, status, definite, retry, type, meaning, advice }: Explained): string {
  const fields = [
    ...(status === undefined ? [] : [`HTTP ${status}`]),
    `retry \`${retry}\``,
    definite ? "definite" : "**not definite**: it may have happened",
    `in the SDK \`${type}\``,
  ];
  return `### ${code}\n\n**${meaning}** (${fields.join(", ")})\n\n${advice}.`;
}

/** The generated parts of the page, by name. */
export function errorParts(): Readonly<Record<string, string>> {
  const codes = Object.keys(ERRORS) as ErrorCode[];
  const sections = (explained: readonly Explained[]): string => explained.map(section).join("\n\n");
  return {
    "codes of the service": sections(
      codes.map((code) => {
        const { title: meaning, ...fields } = ERRORS[code];
        return { code, ...fields, meaning, type: errorOf(refuse(code), "").constructor.name, advice: ADVICE[code] };
      }),
    ),
    "codes of the client": sections(
      clientCodes().map(({ code, definite, retry, type }) => {
        const [meaning, advice] = CLIENT_ADVICE[code]!;
        return { code, definite: definite === "true", retry, type: type || LockError.name, meaning, advice };
      }),
    ),
    "reasons of a loss": table(
      ["reason", "what happened"],
      Object.entries(REASONS).map(([reason, text]) => [`\`${reason}\``, text]),
    ),
  };
}
