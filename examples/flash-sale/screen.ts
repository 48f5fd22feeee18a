/**
 * Draws a sale: in a terminal a moving bar (cli-progress), elsewhere a plain line at every quarter of the way. Colours
 * and escape codes are only for terminals.
 */
import { SingleBar } from "cli-progress";
import pc from "picocolors";
import { linesAfter } from "./sentence.js";

/** The progress display of one sale. */
export interface Progress {
  /** Counts one more finished buyer, and the requests spent on it. */
  step(requests: number): void;
  /** Leaves the last state on the screen and restores the cursor. Safe to repeat. */
  stop(): void;
}

/** The output of the demo. */
export interface Screen {
  readonly colors: ReturnType<typeof pc.createColors>;
  readonly isTerminal: boolean;
  say(text?: string): void;
  /** Says a sentence after `mark`, in as many lines as it needs. */
  sayAfter(mark: string, sentence: string): void;
  /** Draws a sale. `isBrief`: in a terminal, nothing of it stays. */
  progress(buyers: number, isBrief: boolean): Progress;
}

/** The number of progress lines of a sale without a terminal. */
const PLAIN_LINES = 4;

/** Creates the screen on `stream`. */
export function screenOn(stream: NodeJS.WriteStream): Screen {
  const { isTTY: isTerminal = false } = stream as { isTTY?: boolean }; // Absent without a terminal.
  // By itself picocolors also colours wherever CI is set, terminal or not.
  const colors = pc.createColors(isTerminal && pc.isColorSupported);
  const say = (text = ""): void => void stream.write(`${text}\n`);
  const width = (): number => (isTerminal ? (stream.columns || 80) - 1 : Infinity);
  const sayAfter: Screen["sayAfter"] = (mark, sentence) => linesAfter(mark, sentence, width()).forEach(say);
  const progress: Screen["progress"] = (buyers, isBrief) => (isTerminal ? bar(stream, buyers, isBrief, colors.cyan) : lines(say, buyers));
  return { colors, isTerminal, say, sayAfter, progress };
}

function bar(stream: NodeJS.WriteStream, buyers: number, isBrief: boolean, colored: (text: string) => string): Progress {
  const format = `  ${colored("{bar}")} {value}/{total} buyers · {duration} s · {requests} lock requests`;
  const options = { stream, format, barCompleteChar: "█", barIncompleteChar: "░", barsize: 30, fps: 10, hideCursor: true };
  const drawn = new SingleBar({ ...options, gracefulExit: false, linewrap: true, clearOnComplete: isBrief });
  let requests = 0;
  drawn.start(buyers, 0, { requests });
  return {
    step(spent) {
      requests += spent;
      drawn.increment(1, { requests });
    },
    stop: () => drawn.isActive && drawn.stop(),
  };
}

function lines(say: Screen["say"], buyers: number): Progress {
  const beganAtMs = performance.now();
  let done = 0;
  let requests = 0;
  return {
    step(spent) {
      done++;
      requests += spent;
      const isQuarter = Math.floor((done * PLAIN_LINES) / buyers) > Math.floor(((done - 1) * PLAIN_LINES) / buyers);
      if (isQuarter) say(`  ${done}/${buyers} buyers, ${((performance.now() - beganAtMs) / 1000).toFixed(1)} s, ${requests} requests`);
    },
    stop: () => undefined,
  };
}
