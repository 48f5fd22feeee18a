/** A limit: what is left of each rate over time, who holds and waits for its permits, and who was refused. */
import { useContext, useRef, useState } from "preact/hooks";
import { formatDuration, formatSeconds, rateText } from "../text/duration.js";
import { plain } from "../text/plain-text.js";
import type { LimitData, LimitOfKey, Line } from "../data.js";
import { type Filling, type Refused, filledBy, fillMs, fullAtMsOf, levelsOf, refusedOf, withSeen } from "../fill.js";
import { permitWaitOf } from "../overview.js";
import { serviceNowMs } from "./clock.js";
import { ResetLimitDialog } from "./dialog.js";
import { EventsPanel, SPANS, SpanChoice, useOwnLines } from "./history.js";
import { type OneProps, SharedContext, doneWith, useIsKnown, useNow, usePolled, useWidth } from "./hooks.js";
import { type Content, html } from "./html.js";
import { holdersPanel, queuePanel } from "./key-view.js";
import { changeButton, empty, Freshness, keyName } from "./parts.js";
import { KEY_POLL_MS } from "./poll.js";
import { listHref } from "./route.js";
import { permitsText, sentence, whenText } from "./words.js";

const DAY_MS = 86_400_000;
type RateOf = NonNullable<LimitOfKey["rates"]>[number];

/** The page of a limit. */
export function LimitView(props: OneProps): Content {
  const { about, name, logFromMs } = props;
  const polled = usePolled<LimitData>("limit", { key: name }, Math.min(about.pollMs, KEY_POLL_MS));
  const isKnown = useIsKnown(polled);
  const { isUtc } = useContext(SharedContext);
  const [isResetting, setResetting] = useState(false);
  const log = useOwnLines(props, "limit", "lock");
  const { data, atMs = 0 } = polled;
  const limit = data?.limit ?? undefined;
  const lock = data?.lock ?? undefined;
  const fillings = useFillings(limit, log.own, logFromMs, polled.atMs);
  const when: When = (timeMs) => whenText(timeMs, serviceNowMs(), isUtc);
  const since = (lastsMs: number): string => `since ${when(atMs - lastsMs)} (${formatSeconds(lastsMs)})`;
  const none = (title: string): Content => (isKnown ? empty(title) : empty("Not known", `At ${when(atMs)}: ${title.toLowerCase()}.`));
  const said = isKnown ? saidOf(limit, log.own, atMs, when) : `At ${when(atMs)}: ${leftText(limit)}. Not known since.`;
  return html`<main id="main" tabindex="-1">
    <p class="back"><a href=${listHref("limits")} data-back>‹ Limits</a></p>
    <div class="title">
      <h1>${keyName(name, limit?.parts)}</h1>
      ${about.canChange && limit?.fullInMs !== undefined && changeButton("Reset…", isKnown, () => setResetting(true), { "data-change": true })}
    </div>
    <${Freshness} polled=${polled} />
    ${!data && !polled.error && html`<p class="loading">Reading the limit…</p>`} ${data && html`<p class="sentence"><bdi>${said}</bdi></p>`}
    ${limit?.rates && html`<${Rates} limit=${limit} fillings=${fillings} knownUntilMs=${isKnown ? undefined : atMs} />`}
    ${lock && html`<div class=${`panels ${isKnown ? "" : "old"}`}>${holdersPanel(lock, since, isKnown, none)}${queuePanel(lock, since, isKnown, none)}</div>`}
    ${data && html`<${EventsPanel} ...${{ ...props, ...log }} />`}
    ${isResetting && html`<${ResetLimitDialog} name=${name} isKnown=${isKnown} onClose=${() => setResetting(false)} onDone=${doneWith(props, polled)} />`}
  </main>`;
}

/** Returns a time in words. */
type When = (timeMs: number) => string;

/** Returns a time that comes after some ms in words, behind others. */
type InText = (what: string, ms: number) => string;

/** Returns the state of a limit as sentences: what is left, when the next may start, who was refused, and when all is back. */
function saidOf(limit: LimitOfKey | undefined, own: readonly Line[], atMs: number, when: When): string {
  const refused = refusedOf(own);
  const refusal = refused && refusalText(refused, when);
  const inText: InText = (what, ms) => `${what} ${when(atMs + ms)} (in ${formatSeconds(ms)})`;
  const { fullInMs } = limit ?? {};
  const back = fullInMs === undefined ? undefined : inText("all is back at", fullInMs);
  const clauses = [leftText(limit), limit && nextText(limit, inText), refusal, back];
  return clauses.flatMap((clause) => (clause === undefined ? [] : [sentence(clause)])).join(" ");
}

/** The end of a wait for a permit. */
const PERMIT_COMES = { "all out": "a permit is back", "others wait": "those that wait have started" } as const;

/** Says when the next may start, as far as that is known: it needs a permit, and room in each rate. */
function nextText(limit: LimitOfKey, inText: InText): string | undefined {
  const wait = permitWaitOf(limit);
  // A limit without rates has permits alone.
  const nextInMs = limit.rates ? limit.nextInMs : 0;
  if (wait !== undefined) return `the next starts once ${PERMIT_COMES[wait]}${nextInMs ? inText(", and not before", nextInMs) : ""}`;
  if (nextInMs === undefined) return undefined;
  return nextInMs === 0 ? "the next may start now" : inText("the next may start at", nextInMs);
}

/** Returns what is left of each rate, and the permits that are out. */
function leftText(limit: LimitOfKey | undefined): string {
  if (!limit) return "not in use: all is back, or it was never used";
  const { rates = [], remaining = [], permits } = limit;
  const ofRates = rates.map(({ burst }, at) => `${remaining[at] ?? 0} of ${burst}`);
  const left = ofRates.length > 0 ? [`${ofRates.join(" and ")} left`] : [];
  return [...left, ...(permits ? [permitsText(permits)] : [])].join(", ");
}

/** Returns how often somebody was refused, since when and who, as far as the log tells. */
function refusalText({ count, sinceMs, owners }: Refused, when: When): string {
  const others = owners.length > OWNERS_MAX ? ` and ${owners.length - OWNERS_MAX} more` : "";
  const who = owners.length > 0 ? `, ${owners.slice(0, OWNERS_MAX).map(plain).join(", ")}${others} among them` : "";
  return `refused ${count === 1 ? "once" : `${count} times`} since ${when(sinceMs)}${who}`;
}

const OWNERS_MAX = 3;

/** Remembers how each rate filled: by the takes of the log until the page was opened, and since then by what it saw. */
function useFillings(
  limit: LimitOfKey | undefined,
  own: readonly Line[],
  logFromMs: number | undefined,
  atMs: number | undefined,
): readonly (readonly Filling[])[] {
  const seen = useRef<readonly (readonly Filling[])[]>([]);
  const { rates = [], remaining = [], fullInMs = 0 } = limit ?? {};
  if (atMs !== undefined && limit) {
    const fullAt = fullAtMsOf({ rates, remaining, fullInMs }, atMs);
    seen.current = rates.map((rate, at) => withSeen(seen.current[at] ?? [], rate, { atMs, fullAtMs: fullAt[at] ?? atMs }));
  }
  const lines = own.filter(({ kind }) => kind === "limit");
  return rates.map((rate, at) => {
    const firstMs = seen.current[at]?.[0]?.atMs ?? Infinity;
    const before = logFromMs === undefined ? [] : [{ atMs: logFromMs, fullAtMs: 0 }, ...filledBy(lines, rate, at)];
    return [...before.filter((filling) => filling.atMs < firstMs), ...(seen.current[at] ?? [])];
  });
}

/** The rates of a limit over a time that is chosen, or in which each fills. */
function Rates(props: {
  readonly limit: LimitOfKey;
  readonly fillings: readonly (readonly Filling[])[];
  /** The time of the last answer, in epoch ms, if that is old. */
  readonly knownUntilMs: number | undefined;
}): Content {
  const { limit, fillings, knownUntilMs } = props;
  const { rates = [], remaining = [] } = limit;
  const [chosenMs, setSpan] = useState<number>();
  const spansMs = rates.map((rate) => chosenMs ?? SPANS.find((ms) => ms >= fillMs(rate)) ?? DAY_MS);
  // None is chosen as long as each rate has a time of its own.
  const spanMs = new Set(spansMs).size === 1 ? (spansMs[0] ?? 0) : 0;
  return html`<section class=${`panel ${knownUntilMs === undefined ? "" : "old"}`} aria-label="Rates">
    <header>
      <h2>Left over time</h2>
      ${SpanChoice({ spanMs, setSpan })}
    </header>
    ${rates.map((rate, at) => html`<${Fill} key=${at} ...${{ rate, knownUntilMs, left: remaining[at] ?? 0, fillings: fillings[at] ?? [], spanMs: spansMs[at] ?? DAY_MS }} />`)}
  </section>`;
}

const PICTURE_PX = 72;
const LABEL_PX = 18;
/** The part of the width that shows the future, in which the rate fills. */
const FUTURE = 0.25;

/** The rest of one rate over time, and how it fills if nothing more is taken. */
function Fill(props: {
  readonly rate: RateOf;
  readonly left: number;
  readonly fillings: readonly Filling[];
  readonly spanMs: number;
  /** The time of the last answer, in epoch ms, if that is old. */
  readonly knownUntilMs: number | undefined;
}): Content {
  const { rate, left, fillings, spanMs, knownUntilMs } = props;
  const { isUtc } = useContext(SharedContext);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const nowMs = useNow(1000);
  const knownMs = knownUntilMs ?? nowMs;
  const fromMs = nowMs - spanMs;
  const toMs = nowMs + (spanMs * FUTURE) / (1 - FUTURE);
  const x = (timeMs: number): number => ((timeMs - fromMs) / (toMs - fromMs)) * width;
  const y = (level: number): number => 1 + (PICTURE_PX - 2) * (1 - level / rate.burst);
  const pathOf = (beginMs: number, endMs: number): string =>
    levelsOf(fillings, rate, beginMs, endMs)
      .map(({ atMs, left: level }) => `${x(atMs).toFixed(1)} ${y(level).toFixed(1)}`)
      .join("L");
  const past = pathOf(fromMs, knownMs);
  const next = knownUntilMs === undefined ? pathOf(nowMs, toMs) : "";
  const firstMs = Math.max(fromMs, fillings[0]?.atMs ?? nowMs);
  return html`<div class="fill-over-time" ref=${box}>
    <p class="figure">${left} of ${rate.burst}<small>${rateText(rate)}, all of it back in ${formatDuration(fillMs(rate))}</small></p>
    ${
      width > 0 &&
      html`<svg
        width=${width}
        height=${PICTURE_PX + LABEL_PX}
        role="img"
        aria-label=${`${rateText(rate)}: ${left} of ${rate.burst} left now`}
      >
        <line class="base" x1="0" x2=${width} y1=${PICTURE_PX} y2=${PICTURE_PX} />
        ${past !== "" && html`<path class="level" d=${`M${x(firstMs).toFixed(1)} ${PICTURE_PX}L${past}L${x(knownMs).toFixed(1)} ${PICTURE_PX}Z`} />`}
        ${next !== "" && html`<path class="level next" d=${`M${next}`} />`}
        <line class="now" x1=${x(nowMs)} x2=${x(nowMs)} y1="0" y2=${PICTURE_PX} />
        <text x="0" y=${PICTURE_PX + 14}>${whenText(fromMs, nowMs, isUtc)}</text>
        <text class="now-label" x=${x(nowMs)} y=${PICTURE_PX + 14} text-anchor="middle">now</text>
        <text x=${width} y=${PICTURE_PX + 14} text-anchor="end">${whenText(toMs, nowMs, isUtc)}</text>
      </svg>`
    }
  </div>`;
}
