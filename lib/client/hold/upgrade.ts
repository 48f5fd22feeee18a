/** Asks to become the writer until the other readers have left. */
import type { Refusal } from "../../core/errors.js";
import * as DEFAULTS from "../../core/request-defaults.js";
import type { AskDeps } from "../ask/fresh-id.js";
import { Wait } from "../ask/wait.js";
import { capWaitMs } from "../wire/invocation.js";
import { CHECKS, checkOptions } from "../wire/checks.js";
import type { StopSignal } from "../wire/lazy-abort.js";
import type { RetryBounds } from "../wire/retry.js";
import type { Lease } from "./lease-types.js";

/** The polling interval of an upgrade that waits for other readers, in ms. */
const UPGRADE_POLL_MS = 200;

/**
 * Sends `ask`, which returns the refusal if there is one, until it succeeds.
 * @throws LockTimeoutError after `waitMs`; LockError for a refusal other than `locked`; LockLostError
 */
export async function untilUpgraded(
  lease: Pick<Lease, "key" | "assertHeld"> & { readonly leaseMs: number },
  options: { readonly waitMs?: number | undefined },
  ending: StopSignal,
  ask: (bounds: RetryBounds) => Promise<Refusal | undefined>,
  deps: AskDeps,
): Promise<void> {
  checkOptions("upgrade", options, { waitMs: CHECKS.waitMs });
  const { random, context } = deps;
  const wait = new Wait(capWaitMs(options.waitMs ?? DEFAULTS.waitMs, context), deps);
  const what = `upgrade ${lease.key}`;
  for (;;) {
    const refusal = await ask(wait.bounds(lease.leaseMs, ending));
    if (!refusal) return;
    if (refusal.code !== "locked") throw wait.endedBy(refusal, what);
    wait.answered(refusal);
    if (wait.isEnding()) throw wait.over(what);
    await wait.pause(UPGRADE_POLL_MS * (0.5 + 0.5 * random()), ending);
    lease.assertHeld();
  }
}
