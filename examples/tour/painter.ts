/** Draws a scene: in a terminal lanes that grow, five times a second; elsewhere a plain line for each thing that happens, and the lanes at its end. */
import { setInterval } from "node:timers";
import pc from "picocolors";
import type { Lane } from "./lanes.js";
import { laneText } from "./lanes.js";

/** The part of a stage that is drawn. */
interface Drawn {
  readonly lanes: readonly Lane[];
  nowMs(): number;
}

/** The output of the tour. */
export interface Painter {
  title(sentence: string): void;
  /** Says where else the scene can be seen. */
  aside(text: string): void;
  /** Draws the lanes until the returned function is called. */
  draw(drawn: Drawn): () => void;
  /** Says what happens, under the lanes as they are. */
  tell(sentence: string, drawn: Drawn): void;
  verdict(isProven: boolean, sentence: string): void;
}

const FRAME_MS = 200;
const COLUMNS = 44;
const CLEAR_LINE = "\u001B[2K";

/** Creates a painter on `stream`. */
export function painterOn(stream: NodeJS.WriteStream): Painter {
  const { isTTY: isTerminal = false } = stream as { isTTY?: boolean }; // Absent without a terminal.
  // By itself picocolors also colours wherever CI is set, terminal or not.
  const { blue, bold, dim, green, red, yellow } = pc.createColors(isTerminal && pc.isColorSupported);
  const coloured = (text: string): string => text.replace(/█+/g, green).replace(/·+/g, yellow).replace(/░+/g, blue).replace(/✕/g, red);
  const say = (text: string): void => void stream.write(`${text}\n`);
  /** The lines of the picture that the next frame overwrites. */
  let lines = 0;
  const paint = ({ lanes, nowMs }: Drawn): void => {
    const width = isTerminal ? (stream.columns || 80) - 1 : Infinity;
    const texts = lanes.map((lane) => coloured(`  ${laneText(lane, nowMs(), COLUMNS)}`.slice(0, width)));
    const clear = isTerminal ? CLEAR_LINE : "";
    stream.write(back() + texts.map((text) => `${clear}${text}\n`).join(""));
    lines = isTerminal ? lanes.length : 0;
  };
  const back = (): string => (lines > 0 ? `\u001B[${lines}A` : "");
  return {
    title: (sentence) => say(`\n${bold(sentence)}`),
    aside: (text) => say(dim(text)),
    draw(drawn) {
      const timer = isTerminal ? setInterval(() => paint(drawn), FRAME_MS) : undefined;
      return () => {
        clearInterval(timer);
        paint(drawn);
        lines = 0;
      };
    },
    tell(sentence, drawn) {
      const time = `${(drawn.nowMs() / 1000).toFixed(1)} s`.padStart(8);
      if (isTerminal) stream.write(`${back()}${CLEAR_LINE}`);
      say(`${dim(time)}  ${sentence}`);
      lines = 0;
      if (isTerminal) paint(drawn);
    },
    verdict: (isProven, sentence) => say(isProven ? `${green("✓")} ${sentence}` : `${red("✗")} ${sentence}`),
  };
}
