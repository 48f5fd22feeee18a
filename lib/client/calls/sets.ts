/** Acquires many keys at once. A set waits in the queue of the key that blocks it, and asks for the whole set when its turn has come there. */
import type { LeaseRef } from "../../core/api/locks.js";
import { isA } from "../../core/brand.js";
import { type Instant, elapsedMs, instantOf } from "../../core/time.js";
import type { Mode } from "../../core/record.js";
import * as LIMITS from "../../core/request-limits.js";
import { type AcquireParams, cancel, tryOnce } from "../ask/fresh-id.js";
import { untilGranted } from "../ask/until-granted.js";
import { InvalidRequestError, LockTimeoutError } from "../wire/errors.js";
import type { Session } from "./session.js";
import type { HeldLease } from "../hold/lease.js";
import { type SetAsLease, type SetKey, setAsLease } from "../hold/lease-set.js";
import type { SetOptions } from "./options.js";
import type { TimedOutWaits } from "./timed-out-waits.js";
import { CHECKS, checkOptions, refused, unchecked } from "../wire/checks.js";
import { Wait } from "../ask/wait.js";

/** The longest time for which a set keeps its turns at some keys while it waits for its turn at another, in ms. */
const KEPT_MS = 2000;

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

/**
 * Asks until the whole set is granted. Blocked by a key, it waits for its turn at that key, as any caller does, and then asks for the whole set
 * under the scope of this turn. If another key blocks it then, it gives the turn back, and waits at that one. A key that blocks it again
 * has callers all the time, and so may the others: from then on it keeps its turns, for a bounded time.
 * @throws LockTimeoutError after `waitMs`, LockUnavailableError in an outage.
 */
export async function untilSet(
  session: Session,
  { set, params, modes }: SetParams,
  waitMs: number,
  options: SetOptions,
  timedOut: TimedOutWaits,
): Promise<HeldLease> {
  const { deps } = session;
  const began = instantOf(deps.clock);
  return session.registry.run(options.signal, async (signal) => {
    const wait = new Wait(waitMs, deps);
    const scope = session.scope ?? deps.ids.next(0);
    const turns = new Turns(session);
    const had = new Set<string>();
    let inTheWay = "";
    const what = (): string => `acquire ${params.key}${inTheWay && `: ${inTheWay}`}`;
    try {
      for (let keeps = false; ;) {
        const asked = { ...params, ...(had.size > 0 && { scope }), signal };
        const answered = await tryOnce(asked, wait.bounds(params.leaseMs, signal), { ...deps, api: set.api }, set.acquire);
        const { answer } = answered;
        if (answer.ok) {
          const lease = session.holds.adopt({ ...answered, answer }, options, { api: set.api });
          await turns.giveBack();
          return await lease;
        }
        [inTheWay = ""] = answer.blocking ?? [];
        wait.answered(answer);
        if (wait.isEnding()) wait.end(what());
        keeps ||= had.has(inTheWay);
        if (!keeps) await turns.giveBack();
        had.add(inTheWay);
        await turns.waitAt({ ...asked, key: inTheWay, mode: modes.get(inTheWay) ?? "exclusive", scope }, wait);
      }
    } catch (error) {
      await turns.giveBack();
      return await timedOut.refuse(wait.wasCutShort ? wait.over(what()) : error, what(), inTheWay, began, waitMs);
    }
  });
}

/** The leases of the keys at which a set has its turn. */
class Turns {
  readonly #deps: Session["deps"];
  #held: LeaseRef[] = [];
  #since: Instant | undefined;

  constructor({ deps }: Session) {
    this.#deps = deps;
  }

  /** Waits in the queue of a key. With turns at others, no longer than they are kept: whoever holds this key may wait for them. */
  async waitAt(params: AcquireParams, wait: Wait): Promise<void> {
    const { key } = params;
    const keptMs = this.#since && elapsedMs(this.#since, instantOf(this.#deps.clock));
    const leftMs = Math.min(KEPT_MS, params.leaseMs / 2) - (keptMs ?? 0);
    const isShorter = keptMs !== undefined && leftMs < wait.leftMs();
    try {
      const { answer } = await untilGranted(params, isShorter ? new Wait(leftMs, this.#deps) : wait, this.#deps);
      this.#held.push({ key, leaseId: answer.lease.leaseId });
      this.#since ??= instantOf(this.#deps.clock);
    } catch (error) {
      if (!isShorter || !isA(error, LockTimeoutError)) throw error;
      await this.giveBack();
    }
  }

  async giveBack(): Promise<void> {
    const held = this.#held;
    this.#held = [];
    this.#since = undefined;
    await Promise.all(held.map((turn) => cancel(turn, this.#deps)));
  }
}
