/** Acquires many keys at once. A set waits in the queue of the key that blocks it, and asks for the whole set when its turn has come there (decision 070). */
import type { LeaseRef } from "../../core/api/locks.js";
import { isA } from "../../core/brand.js";
import { instantOf } from "../../core/time.js";
import type { Mode } from "../../core/record.js";
import * as LIMITS from "../../core/request-limits.js";
import { type AcquireParams, cancel, tryOnce } from "../ask/fresh-id.js";
import { untilGranted } from "../ask/until-granted.js";
import { Wait } from "../ask/wait.js";
import type { HeldLease } from "../hold/lease.js";
import { type LeaseSet, type SetAsLease, type SetKey, leaseSetOf, setAsLease } from "../hold/lease-set.js";
import { CHECKS, checkOptions, checkWork, refused, unchecked } from "../wire/checks.js";
import { LockTimeoutError } from "../wire/errors.js";
import type { LockClient } from "./lock-client.js";
import { type SetOptions, type WhenUnavailable, type WorkLast, SET, WHEN_UNAVAILABLE, optionsAndWork } from "./options.js";
import { runUnderLease } from "./run-under-lease.js";
import type { Session } from "./session.js";
import { awaited, mayWaitForItself } from "./surrounding.js";
import { TimedOutWaits } from "./timed-out-waits.js";
import { unlessUnavailable } from "./unavailable.js";

/** The longest time for which a set keeps its turns at some keys while it waits for its turn at another, in ms. */
const KEPT_MS = 2000;

/** Returns the calls of `session` for several keys at once. */
export function setCalls(session: Session): Pick<LockClient, "tryAcquireAll" | "acquireAll" | "withLocks"> {
  const timedOut = new TimedOutWaits(session);
  const obtain = (params: SetParams, options: SetOptions): Promise<HeldLease> =>
    awaited(session, params.uses, () => untilSet(session, params, session.waitMsOf(options), options, timedOut));

  return {
    async tryAcquireAll(names, options = {}) {
      checkOptions("tryAcquireAll", options, SET);
      const params = setParams(session, names, options);
      params.uses.forEach((use) => mayWaitForItself(session, use));
      const lease = await session.tryOnce(params.params, options, params.set);
      return lease && leaseSetOf(lease, params);
    },

    async acquireAll(names, options = {}) {
      checkOptions("acquireAll", options, SET);
      const params = setParams(session, names, options);
      return leaseSetOf(await obtain(params, options), params);
    },

    async withLocks<T>(names: readonly SetKey[], ...rest: WorkLast<SetOptions & WhenUnavailable, LeaseSet, T>): Promise<T> {
      const [options, work] = optionsAndWork(rest);
      checkWork("withLocks", "work", work);
      checkOptions("withLocks", options, { ...SET, ...WHEN_UNAVAILABLE });
      const params = setParams(session, names, options);
      return unlessUnavailable(session, options, params.params.key, {
        acquire: () => obtain(params, options),
        under: (lease) => {
          const shown = leaseSetOf(lease, params);
          return runUnderLease(session, lease, { uses: params.uses, shown }, () => work(shown));
        },
        alone: work,
      });
    },
  };
}

/** A requested set: its distinct keys and the acquire parameters. */
interface SetParams {
  readonly uses: readonly { readonly key: string; readonly mode: Mode }[];
  /** For each key, its name at the caller: without the client's prefix. */
  readonly names: ReadonlyMap<string, string>;
  readonly set: SetAsLease;
  readonly params: AcquireParams;
}

/** @throws InvalidRequestError naming the invalid key, or if there are no keys or too many. */
function setParams(session: Session, names: readonly SetKey[], options: SetOptions): SetParams {
  if (!Array.isArray(names)) throw refused("keys", names, "it must be a list of keys");
  const named = (names as readonly (SetKey | null)[]).map((name) => (typeof name === "object" && name !== null ? name : { key: name }));
  const modes = new Map<string, Mode>();
  const called = new Map<string, string>();
  for (const name of named as readonly { readonly key: string; readonly mode?: Mode }[]) {
    checkOptions("a key", name, { key: unchecked, mode: CHECKS.mode });
    const { key: callerKey, mode = "exclusive" } = name;
    const key = session.keyOf(callerKey);
    called.set(key, callerKey);
    // A key requested in both modes is requested exclusively.
    modes.set(key, modes.get(key) === "exclusive" ? "exclusive" : mode);
  }
  if (modes.size === 0 || modes.size > LIMITS.setKeys) throw refused("keys", names, `it must be 1 to ${LIMITS.setKeys} keys`);
  const uses = Array.from(modes, ([key, mode]) => ({ key, mode }));
  const name = [...modes.keys()].join(" ");
  return { uses, names: called, set: setAsLease(session.deps.api, name, uses), params: session.acquireParams(name, options) };
}

/**
 * Asks until the whole set is granted. Blocked by a key, it waits for its turn at that key, as any caller does, and then asks for the whole set
 * under the scope of this turn. If another key blocks it then, it gives the turn back, and waits at that one. A key that blocks it again
 * has callers all the time, and so may the others: from then on it keeps its turns, for a bounded time.
 * @throws LockTimeoutError after `waitMs`, LockUnavailableError in an outage.
 */
async function untilSet(
  session: Session,
  { set, params, uses }: SetParams,
  waitMs: number,
  options: SetOptions,
  timedOut: TimedOutWaits,
): Promise<HeldLease> {
  const { deps } = session;
  const began = instantOf(deps.clock);
  return session.registry.run(options.signal, async (signal) => {
    const wait = new Wait(waitMs, deps);
    const scope = session.scope ?? deps.ids.next(0);
    const blockersBefore = new Set<string>();
    const turns: LeaseRef[] = [];
    const giveBack = (): Promise<unknown> => Promise.all(turns.splice(0).map((turn) => cancel(turn, deps)));
    let [keeps, keptUntilMs, blocker] = [false, 0, ""];
    try {
      for (;;) {
        const request = { ...params, ...(blockersBefore.size > 0 && { scope }), signal };
        const answered = await tryOnce(request, wait.bounds(params.leaseMs, signal), { ...deps, api: set.api }, set.acquire);
        const { answer } = answered;
        if (answer.ok) {
          const lease = session.holds.adopt({ ...answered, answer }, options, { api: set.api });
          await giveBack();
          return await lease;
        }
        [blocker = ""] = answer.blocking ?? [];
        wait.answered(answer);
        if (wait.isEnding()) wait.end(blocker);
        keeps ||= blockersBefore.has(blocker);
        if (!keeps) await giveBack();
        blockersBefore.add(blocker);
        const turn = { ...request, ...uses.find(({ key }) => key === blocker), scope };
        // Whoever holds this key may wait for those that are kept.
        const keptMs = turns.length > 0 ? keptUntilMs - deps.clock.monotonicMs() : Infinity;
        const isShort = keptMs < wait.leftMs();
        const got = await untilGranted(turn, isShort ? new Wait(keptMs, deps) : wait, deps).catch((error: unknown) => {
          if (!isShort || !isA(error, LockTimeoutError)) throw error;
        });
        if (!got) await giveBack();
        else if (turns.push(got.answer.lease) === 1) keptUntilMs = deps.clock.monotonicMs() + Math.min(KEPT_MS, params.leaseMs / 2);
      }
    } catch (error) {
      await giveBack();
      const what = `acquire ${params.key}${blocker && `: ${blocker}`}`;
      return await timedOut.refuse(wait.wasCutShort ? wait.over(what) : error, what, blocker, began, waitMs);
    }
  });
}
