/** A schedule: its occurrences as a strip of squares, the latest last, and when the next is due. */
import { useContext, useState } from "preact/hooks";
import { exactDuration, formatDuration, formatSeconds } from "../text/duration.js";
import { keptText, neverRuns, stateOf } from "../text/run-text.js";
import type { RunOfKey, ScheduleData } from "../data.js";
import { type Slot, intervalOf, SLOTS_MAX, slotsOf, timeOf } from "../schedules.js";
import { read } from "./api.js";
import { serviceNowMs } from "./clock.js";
import { SpanChoice } from "./history.js";
import { type OneProps, SharedContext, useIsKnown, usePoll } from "./hooks.js";
import { type Content, html } from "./html.js";
import { chip, empty, fact, Freshness, keyName, mark } from "./parts.js";
import { hrefOf, listHref } from "./route.js";
import { type Tone, dateText, timeText, whenText } from "./words.js";

const DAY_MS = 86_400_000;
/** The choices of time, in ms. */
const SPANS = [7 * DAY_MS, 30 * DAY_MS] as const;

const TONES: Readonly<Record<RunOfKey["state"], Tone>> = { running: "held", interrupted: "late", succeeded: "done", failed: "over" };

/** Returns the colour of a run. An occurrence that never runs has none. */
export function toneOfRun(run: RunOfKey): Tone {
  return neverRuns(run) === undefined ? TONES[run.state] : "free";
}

/** A square: its state in a word, its colour and its shape. */
interface Square {
  readonly word: string;
  readonly tone: Tone;
  readonly shape?: Tone;
}

/** The squares of the legend, in the order of the sentence. */
const SQUARES: readonly Square[] = [
  { word: "done", tone: "done" },
  { word: "running", tone: "held" },
  { word: "failed", tone: "over" },
  { word: "interrupted", tone: "late" },
  { word: "skipped", tone: "free" },
  { word: "too late", tone: "free", shape: "waiting" },
  { word: "nothing on record", tone: "unknown" },
];
const NOTHING = "nothing on record";

/** Returns the word of a slot. */
function wordOf({ run }: Slot<RunOfKey>): string {
  if (!run) return NOTHING;
  return neverRuns(run) ?? (run.state === "succeeded" ? "done" : run.state);
}

/** The page of a schedule. */
export function ScheduleView({ about, name }: OneProps): Content {
  const [spanMs, setSpan] = useState<number>(SPANS[0]);
  const [all, setAll] = useState("");
  const ask = (reader: AbortSignal) =>
    read<ScheduleData>("schedule", { key: name, days: spanMs / DAY_MS, until: Math.ceil(serviceNowMs()), all }, reader);
  const polled = usePoll(ask, about.pollMs, `schedule ${name} ${spanMs} ${all}`);
  const isKnown = useIsKnown(polled);
  const { isUtc } = useContext(SharedContext);
  const { data, atMs = 0 } = polled;
  const runs = data?.items ?? [];
  const intervalMs = intervalOf(runs.map(timeOf));
  const slots = slotsOf(runs, intervalMs, atMs).slice(-SLOTS_MAX);
  const last = runs.at(-1);
  const when = (timeMs: number): string => whenText(timeMs, atMs, isUtc);
  return html`<main id="main" tabindex="-1">
    <p class="back"><a href=${listHref("runs")} data-back>‹ Runs</a></p>
    <div class="title">
      <h1>${keyName(name)}</h1>
      ${last && (isKnown ? chip(toneOfRun(last), stateOf(last)) : chip("unknown"))}
    </div>
    <${Freshness} polled=${polled} />
    ${!data && !polled.error && html`<p class="loading">Reading the occurrences…</p>`}
    ${
      data &&
      html`<p class="sentence">${isKnown ? said() : `At ${when(atMs)}: ${summaryOf(slots)}. Not known since.`}</p>
        <section class=${`panel ${isKnown ? "" : "old"}`} aria-label="Occurrences">
          <header>
            <h2>Occurrences</h2>
            ${SpanChoice({ spans: SPANS, spanMs, setSpan })}
          </header>
          ${slots.length > 0 ? html`<${Strips} name=${name} slots=${slots} isDaily=${intervalMs === undefined || intervalMs < DAY_MS} />` : empty("No occurrence in this time")}
          ${legendOf(slots)}
          ${
            data.more &&
            html`<p class="muted">
              Older ones were not read.${" "}
              ${all === "" && runs.length < SLOTS_MAX && html`<button type="button" onClick=${() => setAll("1")}>Read all</button>`}
            </p>`
          }
        </section>
        ${facts(name, last, intervalMs)}`
    }
  </main>`;

  function said(): string {
    if (!last) return `None in the last ${formatDuration(spanMs)}.`;
    const lastMs = timeOf(last);
    const state = last.state === "succeeded" ? wordOf({ atMs: lastMs, run: last }) : stateOf(last);
    return `In ${formatDuration(spanMs)}: ${summaryOf(slots)}. The last was due at ${when(lastMs)}: ${state}.${intervalMs === undefined ? "" : ` ${nextText(lastMs, intervalMs)}`}`;
  }

  /** Says when the next is due, if the schedule goes on. */
  function nextText(lastMs: number, everyMs: number): string {
    const [nextMs, every] = [lastMs + everyMs, exactDuration(everyMs)];
    if (nextMs > atMs) return `If they come every ${every}, the next is due at ${when(nextMs)} (in ${formatSeconds(nextMs - atMs)}).`;
    return `If they come every ${every}, one was due at ${when(nextMs)} (${formatSeconds(atMs - nextMs)} ago), and nothing is on record of it.`;
  }
}

function facts(name: string, last: RunOfKey | undefined, intervalMs: number | undefined): Content {
  const interval =
    intervalMs === undefined
      ? "these occurrences have none in common"
      : `${exactDuration(intervalMs)}, as most of these occurrences have it`;
  return html`<section class="panel" aria-label="Schedule">
    <dl class="facts">
      ${fact("Interval", interval)} ${last?.keptForMs !== undefined && fact("Last outcome kept for", keptText(last))}
      ${fact("More", html`<a href=${hrefOf("runs", undefined, { find: `${name}_` })}>the list of its occurrences</a>, <a href=${hrefOf("locks", name)}>the lock of its name</a>`)}
    </dl>
  </section>`;
}

/** The squares: a line for each day if there may be several in one, and otherwise one line. */
function Strips(props: { readonly name: string; readonly slots: readonly Slot<RunOfKey>[]; readonly isDaily: boolean }): Content {
  const { name, slots, isDaily } = props;
  const { isUtc } = useContext(SharedContext);
  // Once for each: to write a date takes a browser long.
  const dated = slots.map((slot) => [dateText(slot.atMs, isUtc, { weekday: "short" }), slot] as const);
  const lines = isDaily ? new Set(dated.map(([day]) => day)) : [name];
  return html`<ol class="strips">
    ${[...lines].map(
      (line) =>
        html`<li class="strip" key=${line}>
          ${isDaily && html`<span class="muted">${line}</span>`}
          <ol class="squares" aria-label=${line}>
            ${dated
              .filter(([day]) => !isDaily || day === line)
              .map(([day, slot]) => square(slot, `${day}, ${timeText(slot.atMs, isUtc)}`, slot === slots.at(-1)))}
          </ol>
        </li>`,
    )}
  </ol>`;
}

/** Returns a square, which opens its run. The keyboard comes to the latest by Tab, and to the others by the arrows. */
function square(slot: Slot<RunOfKey>, when: string, isLatest: boolean): Content {
  const { atMs, run } = slot;
  const word = wordOf(slot);
  const took = run?.tookMs === undefined || neverRuns(run) !== undefined ? "" : `, took ${formatDuration(run.tookMs)}`;
  const text = `${when}: ${word}${took}`;
  if (!run) return html`<li key=${atMs} title=${text}>${sign(word)}<span class="visually-hidden">${text}</span></li>`;
  return html`<li key=${atMs} title=${text}>
    <a class="row-link" href=${hrefOf("runs", run.key)} aria-label=${text} tabindex=${isLatest ? 0 : -1}>${sign(word)}</a>
  </li>`;
}

function sign(word: string): Content {
  const { tone, shape } = SQUARES.find((one) => one.word === word) ?? { tone: "unknown" as const, shape: undefined };
  return html`<span class=${`square ${tone} ${word === NOTHING ? "none" : ""}`} aria-hidden="true"
    >${word !== NOTHING && mark(tone, shape)}</span
  >`;
}

/** Returns how many of the slots have which state: `6 done, 1 failed`. */
function summaryOf(slots: readonly Slot<RunOfKey>[]): string {
  const words = slots.map(wordOf);
  const counts = SQUARES.map(({ word }) => [words.filter((each) => each === word).length, word] as const);
  const told = counts.flatMap(([count, word]) => (count > 0 ? [`${count} ${word === NOTHING ? `with ${word}` : word}`] : []));
  return told.join(", ") || "no occurrence in this time";
}

/** The signs that are shown, with what they mean. */
function legendOf(slots: readonly Slot<RunOfKey>[]): Content {
  const words = new Set(slots.map(wordOf));
  return html`<ul class="legend" aria-hidden="true">
    ${SQUARES.filter(({ word }) => words.has(word)).map(({ word }) => html`<li>${sign(word)}${word === NOTHING ? `${word}: missed, or none was due` : word}</li>`)}
  </ul>`;
}
