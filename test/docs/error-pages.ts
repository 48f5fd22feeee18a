/** The tables of docs/errors.md, generated from the registry, from the SDK's own classes and from the errors that its sources throw. */
import { errorOf, LockError } from "../../lib/client/errors.js";
import type { LockLostError } from "../../lib/client/errors.js";
import type { ErrorCode } from "../../lib/core/errors.js";
import { ERRORS, refuse } from "../../lib/core/errors.js";
import { sourcesIn } from "../tidy/tree.js";
import { table } from "./generated.js";

/** Advice for each error code. The type makes it complete. */
const ADVICE: Readonly<Record<ErrorCode, string>> = {
  "invalid-request": "Correct the field that `field` names. The SDK checks most rules before it sends anything",
  forbidden: "Ask as the principal that acquired the lease, or have the missing permission for the path and the key granted",
  "not-found": "Look at the path, or at the key: nothing holds it, no such run is kept",
  "method-not-allowed": "Use a method that the header `Allow` names",
  "limit-mismatch": "All who use a key say the same `limit`. While it is in use it can't be changed; a free key takes the next caller's",
  "run-in-progress": "Wait `retryAfterMs`, or send `Prefer: wait`. `runOnce` waits by itself, then throws `LockTimeoutError`",
  "attempts-exhausted": "Find out why the work keeps failing; then `runs.reset`, or start with a larger `maxAttempts`",
  "outcome-differs": "Keep what was recorded first: it is what everybody is told",
  "upgrade-conflict": "Release the shared lease and acquire an exclusive one: two readers that both wait to upgrade wait for ever",
  "token-mismatch": "An earlier change of mode arrived before this one: look with `GET` under the leaseId what it is now",
  "lease-lost": "Stop. What was done since the last check may overlap with another holder's work; `reason` says how it was lost",
  "lease-over": "Acquire under a new leaseId. It comes of a duplicate that arrived late, or of an id that is used again",
  "other-hold": "Nobody was harmed: the hold that was meant is over. Look who holds now before you break that",
  "too-large": "Send less: keep large things elsewhere, and their name here",
  "unsupported-media-type": "Send `content-type: application/json`",
  "lease-reused": "Make a new leaseId for every logical acquire; send the same body when you send one again",
  "fingerprint-mismatch": "Two different pieces of work have the same idempotency key: give each its own",
  "lease-id-time":
    "Make the UUIDv7 when you send it, by a clock that is right; `serverTimeMs` says what the service's is. The SDK corrects it",
  locked: "Come back after `retryAfterMs`, or wait in the queue (`Prefer: wait`). In the SDK it is no error: `tryAcquire` answers `null`",
  "queue-full": "Come back later. If it happens often: shorter holds, or more keys (segments)",
  "key-full": "Come back later. If it happens often: shorter owners, less `meta`, or more keys (segments)",
  throttled: "Slow down and try later; alarm if it stays",
  "not-configured":
    "Correct what the message names: the table and its keys, the region, the credentials, what they may do, or the namespace. No wrapper goes on past it",
  internal: "Send the same request again, with the same leaseId. If it repeats, the service's log has the cause",
  "clock-skew": "Wait. If it stays, a server's clock is wrong, or the process's own where the client is straight on the table",
  "newer-format": "Deploy this side too: another side already writes a newer major version of the record",
  unavailable: "Send the same request again, with the same leaseId. It may have happened, unless `definite` says otherwise",
};

/** The same for the codes that only the client uses. */
const CLIENT_ADVICE: Readonly<Record<string, readonly [sentence: string, advice: string]>> = {
  closed: ["The client was closed before or during the call", "Close a client when nothing uses it any more"],
  "result-omitted": [
    "The run succeeded, and its result could not be kept",
    'Don\'t do the work again: it is done. Return less than 256 KB of JSON, or say `largeResult: "omit"`',
  ],
  "run-failed": [
    "The run failed for good in an earlier call, and is replayed",
    "Read `cause`; the function was not called. `runs.reset` allows a new first attempt",
  ],
  "self-deadlock": [
    "A `withLock` or `runOnce` around this call holds the key already, and would be waited for",
    "Pass the lease down, or use `locks.scope(id)` for both acquires",
  ],
  "wait-timeout": [
    "The key did not become free within `waitMs`",
    "Nothing is held and nothing is left behind: tell the user, or try again. `holders`, `position` and `waitedMs` say for whom and how long it waited",
  ],
};

const REASONS: Readonly<Record<LockLostError["reason"], string>> = {
  expired: "it ran out, and nobody was granted the key since",
  taken: "it ran out, and another was granted the key",
  broken: "an operator ended it",
  released: "it was released",
  transferred: "it was handed to another",
  never: "that leaseId holds nothing here",
  deadline: "no renewal landed in time: the network, the service, or a process that stood still",
  "max-hold": "it was held for its `maxHoldMs`",
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
  return own.toSorted((a, b) => (a.code < b.code ? -1 : 1));
}

const yes = (definite: boolean): string => (definite ? "yes" : "**no**");

/** The page's tables, by name. */
export function errorTables(): Readonly<Record<string, string>> {
  const codes = Object.keys(ERRORS) as ErrorCode[];
  return {
    "codes of the service": table(
      ["code", "status", "definite", "retry", "what it says", "in the SDK", "what to do"],
      codes.map((code) => {
        const { status, definite, retry, title } = ERRORS[code];
        const type = errorOf(refuse(code), "").constructor.name;
        return [`\`${code}\``, String(status), yes(definite), `\`${retry}\``, title, `\`${type}\``, ADVICE[code]];
      }),
    ),
    "codes of the client": table(
      ["code", "definite", "retry", "what it says", "in the SDK", "what to do"],
      clientCodes().map(({ code, definite, retry, type }) => {
        const [sentence, advice] = CLIENT_ADVICE[code]!;
        return [`\`${code}\``, yes(definite === "true"), `\`${retry}\``, sentence, `\`${type || LockError.name}\``, advice];
      }),
    ),
    "reasons of a loss": table(
      ["reason", "what happened"],
      Object.entries(REASONS).map(([reason, text]) => [`\`${reason}\``, text]),
    ),
  };
}
