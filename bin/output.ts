/** Printing to a stream that may be slow, or gone: whoever listened has heard enough. */
import { once } from "node:events";
import { constants } from "node:os";
import { SIGNAL_BASE } from "./exit-codes.js";

/**
 * Prints to `stream`; resolves when more may be printed. When nobody listens any more, the process ends as one that is
 * ended by SIGPIPE, or, if it `goesOn`, what is printed from then on is lost.
 */
export function printerOn(stream: NodeJS.WriteStream, goesOn: () => boolean): (text: string | Uint8Array) => Promise<void> {
  let isGone = false;
  stream.on("error", () => {
    isGone = true;
    if (!goesOn()) process.exit(SIGNAL_BASE + constants.signals.SIGPIPE);
  });
  return async (text) => {
    if (isGone || stream.write(text)) return;
    await Promise.race([once(stream, "drain"), once(stream, "close")]).catch(() => undefined);
  };
}
