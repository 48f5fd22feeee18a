/** Draws a scene: in a terminal lanes that grow, five times a second; elsewhere a plain line for each thing that happens, and the lanes at its end. */
import { setInterval } from "node:timers";
import pc from "picocolors";
import { linesAfter, wrapped } from "../flash-sale/sentence.js";
import { type Lane, laneText, legendOf, signsWithin, stepMsOf } from "./lanes.js";

/** The part of a stage that is drawn. */
interface Drawn {
  readonly lanes: readonly Lane[];
  nowMs(): number;
}

/** The output of the tour. */
export interface Painter {
  title(sentence: string): void;
  /** Says what the signs of the lanes mean. */
  legend(): void;
  /** Says where else the scene can be seen, and what to do next. */
  aside(text: string): void;
  /** Draws the lanes until the returned function is called. */
  draw(drawn: Drawn): () => void;
  /** Says what happens, under the lanes as they are. */
  tell(sentence: string, drawn: Drawn): void;
  verdict(isProven: boolean, sentence: string): void;
}

const FRAME_MS = 200;
/** The spaces before a lane. */
const INDENT = "  ";
const CLEAR_LINE = "\u001B[2K";
const CLEAR_BELOW = "\u001B[J";

/** Creates a painter on `stream`. */
export function painterOn(stream: NodeJS.WriteStream): Painter {
  const { isTTY: isTerminal = false } = stream as { isTTY?: boolean }; // Absent without a terminal.
  // By itself picocolors also colours wherever CI is set, terminal or not.
  const { cyan, bold, dim, green, red, yellow } = pc.createColors(isTerminal && pc.isColorSupported);
  const coloured = (text: string): string => text.replace(/█+/g, green).replace(/·+/g, yellow).replace(/░+/g, cyan).replace(/✕/g, red);
  const say = (text: string): void => void stream.write(`${text}\n`);
  const width = (): number => (isTerminal ? (stream.columns || 80) - 1 : Infinity);
  const sayAfter = (mark: string, sentence: string, styled?: (text: string) => string): void =>
    linesAfter(mark, sentence, width(), styled).forEach(say);
  const signs = (): number => signsWithin(width() - INDENT.length);
  /** As the legend says it, also after the terminal's width changed. */
  const stepMs = stepMsOf(signs());
  /** The lines of the picture that the next frame overwrites. */
  let lines = 0;
  const paint = ({ lanes, nowMs }: Drawn): void => {
    const texts = lanes.map((lane) => coloured((INDENT + laneText(lane, nowMs(), signs(), stepMs)).slice(0, width())));
    const clear = isTerminal ? CLEAR_LINE : "";
    stream.write(back() + texts.map((text) => `${clear}${text}\n`).join(""));
    lines = isTerminal ? lanes.length : 0;
  };
  const back = (): string => (lines > 0 ? `\u001B[${lines}A` : "");
  return {
    title(sentence) {
      say("");
      sayAfter("", sentence, bold);
    },
    legend: () => wrapped(legendOf(stepMs), width(), "  ").map(coloured).forEach(say),
    aside: (text) => sayAfter("", text, dim),
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
      // A sentence of two lines takes the place of two lanes.
      if (isTerminal) stream.write(`${back()}${CLEAR_BELOW}`);
      sayAfter(`${dim(time)}  `, sentence);
      lines = 0;
      if (isTerminal) paint(drawn);
    },
    verdict: (isProven, sentence) => sayAfter(isProven ? `${green("✓")} ` : `${red("✗")} `, sentence),
  };
}
