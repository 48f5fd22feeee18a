/** The end of a hold and how long it lasted, in words that a line of the log can vouch for. */
import { formatDuration } from "./duration.js";

interface Ended {
  readonly reason?: string | undefined;
  readonly heldMs?: number | undefined;
}

/** Ends that the service sees some time after the lease itself was over, or that may come after it. */
const SEEN_LATER = /^(?:expired|broken|unknown)\b/;

/**
 * Returns the reason of a line and the time of its hold; each `""` if there is none. Nobody knows for how long a holder held that was
 * taken over.
 */
export function endOf({ reason = "", heldMs }: Ended, format = formatDuration): { readonly why: string; readonly held: string } {
  if (heldMs === undefined) return { why: reason, held: "" };
  const time = format(heldMs);
  if (reason === "taken") return { why: `taken over ${time} after its grant`, held: "" };
  return { why: reason, held: `held ${SEEN_LATER.test(reason) ? "at most " : ""}${time}` };
}
