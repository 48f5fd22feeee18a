/** The service's log for people: a line for each change of a key's holders and for each refusal. */
import type { LogLine } from "../../lib/dynamodb.js";
import { formatToTenths } from "../../console/text/duration.js";
import { endOf, factsOf, saying, wordOf } from "../../console/text/held-text.js";
import { plain } from "../../console/text/plain-text.js";
import { shortToken } from "../../console/page/words.js";
import { outcomeText, tellsFailure } from "../../console/text/run-text.js";
import { cutMiddle } from "../table.js";
import { type Screen, cutEnd, widthOf } from "../terminal.js";

/** The widths of the columns; a longer text moves those behind it. With these, the usual lines have at most 80 characters. */
const VERB_CHARS = 8;
const NAME_CHARS = 12;
const GAP = "  ";

type Colour = "green" | "red" | "yellow" | "cyan" | "dim";
const COLOURS: Readonly<Record<string, Colour>> = {
  granted: "green",
  released: "dim",
  queued: "cyan",
  offered: "cyan",
  waiting: "cyan",
  refused: "yellow",
  "gave up": "yellow",
  "lost place": "yellow",
  lost: "red",
  broken: "red",
  breaking: "red",
};

/** The smallest widths of the key, the owner and the details, and the functions that cut them on a screen that is too narrow, in this order. */
const CUTS = [
  { columns: 16, to: cutMiddle },
  { columns: 6, to: cutMiddle },
  { columns: 10, to: cutEnd },
];

/** Returns the line: the local time, what happened, key, owner, and what else is known. It is cut to the screen's width, if it has one. */
export function logText(line: LogLine, { columns: room = Infinity, colors }: Screen): string {
  const { kind, model, id, operateAtMs, owner } = line;
  const time = new Date(operateAtMs).toTimeString().slice(0, "00:00:00".length);
  const verb = wordOf(line).padEnd(VERB_CHARS);
  const key = (kind === "run" ? "run " : "") + (model === "" ? id : `${model}_${id}`);
  const rest = within(room - `${time}${GAP}${verb}${GAP}`.length, [key, owner || "-", detailsOf(line).join(", ")].map(plain));
  const colour = tellsFailure(line) ? "red" : COLOURS[verb.trimEnd()];
  return [colors.dim(time), colour ? colors[colour](verb) : verb, rest].join(GAP);
}

/** Returns the texts as columns that take at most `room` together, if they can be cut so far. */
function within(room: number, texts: readonly string[]): string {
  const cut = [...texts];
  const joined = (): string =>
    cut
      .map((text) => text + " ".repeat(Math.max(0, NAME_CHARS - widthOf(text))))
      .join(GAP)
      .trimEnd();
  for (const [at, { columns, to }] of CUTS.entries()) {
    const tooMuch = widthOf(joined()) - room;
    const width = widthOf(cut[at] ?? "");
    if (tooMuch > 0 && width > columns) cut[at] = to(cut[at] ?? "", Math.max(columns, width - tooMuch));
  }
  return joined();
}

function detailsOf(line: LogLine): readonly string[] {
  const { event, fencingToken, attempt, repeated } = line;
  const { why, held } = endOf(line, formatToTenths);
  const token = fencingToken === undefined || event === "ended" || event === "recorded" ? "" : `token ${shortToken(fencingToken)}`;
  const facts = [
    token,
    saying("attempt", attempt),
    outcomeText(line),
    ...factsOf(line, formatToTenths),
    why,
    held,
    repeated ? "again" : "",
  ];
  return facts.filter((fact) => fact !== "");
}
