/** The behaviour of a wrapper whose locks can't be reached. */
import { isA } from "../../core/brand.js";
import { LockError, LockUnavailableError } from "../wire/errors.js";
import { firstAnswerMs } from "../wire/invocation.js";
import type { WhenUnavailable } from "./options.js";
import type { Session } from "./session.js";

/** A call: what it acquires, its work under that, and its work without. */
interface Steps<A, T> {
  readonly acquire: () => Promise<A>;
  readonly under: (acquired: A) => Promise<T>;
  readonly alone: (nothing: never) => Promise<T> | T;
}

/**
 * Acquires, and runs the work under that. If the locks can't be reached, the work runs alone, or not at all, as the option says. Such a call
 * isn't held up again by an outage that this client met in the last seconds (outage.ts).
 * @param key the key, or the keys of a set, for the listener
 */
export async function unlessUnavailable<A, T>(
  session: Session,
  { whenUnavailable: when, timeoutMs, ...wait }: WhenUnavailable & { readonly waitMs?: number | undefined; readonly timeoutMs?: number },
  key: string,
  { acquire, under, alone }: Steps<A, T>,
): Promise<T> {
  const isSkipped = when === "skip";
  const mayDoWithout = isSkipped || when === "proceed";
  let acquired: A;
  try {
    acquired = await (mayDoWithout ? session.deps.outage.ask(timeoutMs ?? patienceMs(session, wait), acquire) : acquire());
  } catch (error) {
    const isOutage = isA(error, LockUnavailableError);
    if (!isOutage || !mayDoWithout) {
      // A caller that gave up was not refused.
      if (isA(error, LockError)) session.emit({ type: isOutage ? "unavailable" : "refused", key, error });
      throw error;
    }
    session.emit({ type: isSkipped ? "skipped" : "proceeded", key, error });
    return (isSkipped ? undefined : alone(undefined as never)) as T;
  }
  return under(acquired);
}

/** Returns the time after which an acquire without an answer ends. */
function patienceMs(session: Session, options: { readonly waitMs?: number | undefined }): number {
  const waitMs = session.waitMsOf(options);
  return Math.max(waitMs, firstAnswerMs(waitMs, session.context));
}
