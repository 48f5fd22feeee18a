/**
 * Acquires many keys at once. A set doesn't queue: a waiter polls the key that blocked it, and asks for the whole set again when that key
 * is free.
 */
import { type Backoff, backoffMs } from "../../core/backoff.js";
import type { Held } from "../../core/commands.js";
import type { HolderView, Refusal } from "../../core/errors.js";
import type { Mode } from "../../core/record.js";
import * as LIMITS from "../../core/request-limits.js";
import { type AcquireParams, throwIfAborted, tryOnce } from "../ask/fresh-id.js";
import { type Answered, type RetryBounds, retry } from "../wire/retry.js";
import { InvalidRequestError } from "../wire/errors.js";
import type { Session } from "./session.js";
import type { HeldLease } from "../hold/lease.js";
import { type SetAsLease, type SetKey, setAsLease } from "../hold/lease-set.js";
import type { SetOptions } from "./options.js";
import { CHECKS, checkOptions, refused, unchecked } from "../wire/checks.js";
import { Wait } from "../ask/wait.js";

/** The pauses between two polls of a blocking key. */
const LOOKS: Backoff = { firstMs: 100, longestMs: 1000 };
/** The number of polls after which a set with a scope is requested again anyway: the blocking holder can be of the same scope. */
const LOOKS_IN_SCOPE = 5;

/** A requested set: its distinct keys and the acquire parameters. */
export interface SetParams {
  readonly uses: readonly { readonly key: string; readonly mode: Mode }[];
  /** For each key, its name at the caller: without the client's prefix. */
  readonly names: ReadonlyMap<string, string>;
  readonly modes: ReadonlyMap<string, Mode>;
  readonly set: SetAsLease;
  readonly params: AcquireParams;
}

/** @throws InvalidRequestError naming the invalid key, or if there are no keys or too many. */
export function setParams(session: Session, names: readonly SetKey[], options: SetOptions): SetParams {
  if (!Array.isArray(names)) throw refused("keys", names, "it must be a list of keys");
  const named = (names as readonly (SetKey | null)[]).map((name) => (typeof name === "object" && name !== null ? name : { key: name }));
  const modes = new Map<string, Mode>();
  const called = new Map<string, string>();
  for (const name of named as readonly { readonly key: string; readonly mode?: Mode }[]) {
    checkOptions("a key", name, { key: unchecked, mode: CHECKS.mode });
    const { key: given, mode = "exclusive" } = name;
    const key = session.keyOf(given);
    called.set(key, given);
    // A key requested in both modes is requested exclusively.
    modes.set(key, modes.get(key) === "exclusive" ? "exclusive" : mode);
  }
  if (modes.size === 0 || modes.size > LIMITS.setKeys)
    throw new InvalidRequestError(`keys: must be 1 to ${LIMITS.setKeys} different ones`, "keys");
  const uses = Array.from(modes, ([key, mode]) => ({ key, mode }));
  const name = [...modes.keys()].join(" ");
  return { uses, names: called, modes, set: setAsLease(session.deps.api, name, uses), params: session.acquireParams(name, options) };
}

/** Asks until the whole set is granted. @throws LockTimeoutError after `waitMs`, LockUnavailableError in an outage. */
export async function untilSet(
  session: Session,
  { set, params, modes }: SetParams,
  waitMs: number,
  options: SetOptions,
): Promise<HeldLease> {
  const view = { ...session.deps, api: set.api };
  return session.registry.run(options.signal, async (signal) => {
    const { random } = session.deps;
    const wait = new Wait(waitMs, session.deps);
    const what = `acquire ${params.key}`;
    const bounds = (): RetryBounds => wait.bounds(params.leaseMs, signal);
    let inTheWay = "";
    let holders: readonly HolderView[] = [];
    const over = (): Error => wait.over(inTheWay === "" ? what : `${what}: ${inTheWay}`);
    const patience = session.scope === undefined ? Number.POSITIVE_INFINITY : LOOKS_IN_SCOPE;
    for (let looks = 0; ;) {
      const answered: Answered<Held | Refusal> = await tryOnce({ ...params, signal }, bounds(), view, set.acquire).catch(
        (error: unknown) => {
          throw wait.wasCutShort ? over() : error;
        },
      );
      const { answer } = answered;
      if (answer.ok) return session.holds.adopt({ ...answered, answer }, options, { api: set.api });
      const [blocking = ""] = answer.blocking ?? [];
      if (blocking !== inTheWay) holders = [];
      inTheWay = blocking;
      wait.answered({ ...answer, holders });
      if (wait.isEnding()) throw over();
      const mode = modes.get(inTheWay);
      for (let held = true, seen = 0; held && seen < patience; looks++, seen++) {
        await wait.pause(backoffMs(LOOKS, looks) * (0.5 + 0.5 * random()), signal);
        throwIfAborted(signal);
        if (wait.isEnding()) break;
        holders = await holdersInTheWay(session, inTheWay, mode, bounds());
        held = holders.length > 0;
        // A poll is an answer too: otherwise the end of the wait would count as an outage.
        if (held) wait.answered({ ...answer, holders });
      }
    }
  });
}

/** Returns the holders that are incompatible with this mode; an empty list if they can't be read, so that the set is requested again. */
async function holdersInTheWay(
  { deps }: Session,
  key: string,
  mode: Mode | undefined,
  bounds: RetryBounds,
): Promise<readonly HolderView[]> {
  const { answer } = await retry((options) => deps.api.inspect({ key }, options), bounds, deps);
  if (!answer.ok || !("inspection" in answer)) return [];
  return answer.inspection.holders.filter((holder) => mode !== "shared" || holder.mode !== "shared");
}
