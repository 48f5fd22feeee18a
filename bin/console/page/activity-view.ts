/** Grants, refusals, losses and waits over the last minutes as plots, and the log below. */
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatDuration } from "../../duration.js";
import type { Bucket } from "../activity.js";
import { bucketsOf, refusalsSince } from "../activity.js";
import type { Line } from "../data.js";
import { Audit, Events } from "./events.js";
import { HistoryNote, SpanChoice, SPANS } from "./history.js";
import type { ViewProps } from "./hooks.js";
import { SharedContext, useAge, useNow, useWidth } from "./hooks.js";
import type { Content } from "./html.js";
import { html } from "./html.js";
import { EventChoice, isOf, TextFilter } from "./filters.js";
import { empty, Freshness } from "./parts.js";
import { filtersOf } from "./route.js";
import { spanText, timeText } from "./words.js";

/** The number of parts of the time. */
const PARTS = 60;
const PLOT_PX = 84;

/** The view. */
export function ActivityView({ lines, logFromMs, polledLines: polled, query }: ViewProps): Content {
  const [spanMs, setSpan] = useState<number>(SPANS[0]);
  const { isKnown } = useAge(polled);
  const { filters, set } = filtersOf({ place: "activity", query }, { prefix: "", owner: "", event: "" });
  const fits = useMemo(
    () => lines.filter((line) => line.key.startsWith(filters.prefix) && isOf(line, filters)),
    [lines, filters.prefix, filters.owner, filters.event],
  );
  if (logFromMs === undefined)
    return html`<main id="main" tabindex="-1">
      <h1 class="visually-hidden">Activity</h1>
      ${noLog()}
    </main>`;
  return html`<main id="main" tabindex="-1">
    <h1 class="visually-hidden">Activity</h1>
    <${Freshness} polled=${polled} what="lines" />
    <div class="bar-of-spans">${SpanChoice({ spanMs, setSpan })}<${HistoryNote} logFromMs=${logFromMs} /></div>
    <${Plots} lines=${lines} spanMs=${spanMs} knownUntilMs=${isKnown ? undefined : polled.atMs} />
    <section class="panel" aria-label="Operators">
      <header><h2>Breaks and resets</h2></header>
      <${Audit} lines=${lines} />
    </section>
    <section class="panel" aria-label="Log">
      <h2 class="visually-hidden">Log</h2>
      <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
        <${TextFilter}
          label="Key begins with"
          value=${filters.prefix}
          placeholder="ORDER_"
          isFirst
          onChange=${(prefix: string) => set({ prefix })}
        />
        <${TextFilter}
          label="Owner (exact match)"
          value=${filters.owner}
          placeholder="worker-7"
          onChange=${(owner: string) => set({ owner })}
        />
        ${EventChoice({ value: filters.event, onChange: (event) => set({ event }) })}
      </form>
      <${Log} lines=${fits} of=${JSON.stringify(filters)} />
    </section>
  </main>`;
}

function noLog(): Content {
  return empty(
    "The log is not read here",
    "A deployed service writes its log to CloudWatch Logs. Its dashboard has these plots, and the saved query tells the history of one key.",
    "The console of a service on your own machine, by npm start or holdfast dev, shows the log here.",
  );
}

/** The log's lines. They stand still under the pointer: then a notice counts the new ones. */
function Log({ lines, of }: { readonly lines: readonly Line[]; readonly of: string }): Content {
  const [shown, setShown] = useState(lines);
  const isUnderPointer = useRef(false);
  useEffect(() => {
    if (!isUnderPointer.current) setShown(lines);
  }, [lines]);
  useEffect(() => setShown(lines), [of]);
  const last = shown.at(-1)?.seq ?? -1;
  const leave = (): void => {
    isUnderPointer.current = false;
    setShown(lines);
  };
  const news = lines.filter(({ seq }) => seq > last).length;
  return html`<div onPointerEnter=${() => (isUnderPointer.current = true)} onPointerLeave=${leave}>
    <p class="news" role="status">${news > 0 && html`<button type="button" onClick=${() => setShown(lines)}>${news} new, show</button>`}</p>
    ${shown.length > 0 ? html`<${Events} key=${of} lines=${shown} withKey label="The latest lines of the log" />` : empty("No line fits")}
  </div>`;
}

type Value = Exclude<keyof Bucket, "fromMs">;

/** The plots of the time up to now, or up to the last answer if that is old: a time without lines must not look like one without events. */
function Plots(given: { readonly lines: readonly Line[]; readonly spanMs: number; readonly knownUntilMs: number | undefined }): Content {
  const { lines, spanMs, knownUntilMs } = given;
  const { isUtc } = useContext(SharedContext);
  const stepMs = spanMs / PARTS;
  const presentMs = useNow(Math.max(1000, stepMs / 4));
  const nowMs = knownUntilMs ?? presentMs;
  const until = knownUntilMs === undefined ? "now" : timeText(knownUntilMs, isUtc);
  // Whole steps, so that a bar doesn't change while it moves.
  const fromMs = (Math.floor(nowMs / stepMs) + 1 - PARTS) * stepMs;
  const buckets = useMemo(() => bucketsOf(lines, fromMs, stepMs, PARTS), [lines, fromMs, stepMs]);
  const reasons = useMemo(() => refusalsSince(lines, fromMs), [lines, fromMs]);
  const sum = (value: Value): number => buckets.reduce((total, bucket) => total + bucket[value], 0);
  const longest = Math.max(...buckets.map(({ longestWaitMs }) => longestWaitMs));
  const span = spanText(spanMs);
  const reasonsText = reasons.slice(0, 3).map(([reason, count]) => `${reason} ${count}`);
  const plot = (title: string, tone: string, value: Value, note: string, figure = String(sum(value))): Content =>
    html`<section class="panel plot" aria-label=${title}>
      <h2>${title}</h2>
      <p class="figure">${figure}<small>${scale(buckets, value, stepMs)}</small></p>
      <${Bars} label=${`${title}: ${figure}, ${note}`} tone=${tone} buckets=${buckets} value=${value} until=${until} />
      <p class="muted note">${note}</p>
    </section>`;
  return html`<div class="plots">
    ${plot("Grants", "held", "granted", knownUntilMs === undefined ? `in the last ${span}` : `in the ${span} before ${until}`)}
    ${plot("Refusals", "late", "refused", reasonsText.join(" · ") || "none")}
    ${plot("Losses", "over", "lost", "taken over, broken, or released too late")}
    ${plot("Longest wait", "waiting", "longestWaitMs", "from the request to its grant", longest > 0 ? formatDuration(longest) : "–")}
  </div>`;
}

/** Returns the height of the highest bar in words. */
function scale(buckets: readonly Bucket[], value: Value, stepMs: number): string {
  const most = Math.max(...buckets.map((bucket) => bucket[value]));
  return most === 0 || value === "longestWaitMs" ? "" : `peak ${most} per ${formatDuration(stepMs)}`;
}

function Bars(given: {
  readonly label: string;
  readonly tone: string;
  readonly buckets: readonly Bucket[];
  readonly value: Value;
  /** The end of the time, in words. */
  readonly until: string;
}): Content {
  const { label, tone, buckets, value, until } = given;
  const { isUtc } = useContext(SharedContext);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const most = Math.max(1, ...buckets.map((bucket) => bucket[value]));
  const step = width / Math.max(1, buckets.length);
  const text = (bucket: Bucket): string => (value === "longestWaitMs" ? formatDuration(bucket[value]) : String(bucket[value]));
  return html`<div class="bars" ref=${box}>
    ${
      width > 0 &&
      html`<svg width=${width} height=${PLOT_PX + 18} role="img" aria-label=${label}>
        <line class="base" x1="0" x2=${width} y1=${PLOT_PX + 0.5} y2=${PLOT_PX + 0.5} />
        ${buckets.map((bucket, at) => {
          const height = (bucket[value] / most) * (PLOT_PX - 6);
          if (height === 0) return null;
          return html`<rect
            class=${tone}
            x=${at * step + 0.5}
            y=${PLOT_PX - Math.max(2, height)}
            width=${Math.max(1, step - 1.5)}
            height=${Math.max(2, height)}
            rx="1"
            ><title>${timeText(bucket.fromMs, isUtc)}: ${text(bucket)}</title></rect
          >`;
        })}
        <text x="0" y=${PLOT_PX + 14}>${timeText(buckets[0]?.fromMs ?? 0, isUtc)}</text>
        <text x=${width} y=${PLOT_PX + 14} text-anchor="end">${until}</text>
      </svg>`
    }
  </div>`;
}
