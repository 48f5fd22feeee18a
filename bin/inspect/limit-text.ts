/** Rates as text: in the form in which the command line takes them. */
import type { Rate } from "../../lib/index.js";
import { exactDuration } from "../duration.js";

/** Returns a rate as `--rate` takes it: `100/1m`, and `5/1s/2` if fewer may start at once than in the time. */
export function rateText({ count, perMs, burst = count }: Rate): string {
  return `${count}/${exactDuration(perMs)}${burst === count ? "" : `/${burst}`}`;
}

/** Returns rates as text: `100/1m, 5/1s`. */
export function ratesText(rates: readonly Rate[]): string {
  return rates.map(rateText).join(", ");
}
