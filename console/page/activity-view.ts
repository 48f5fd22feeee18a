/** Grants, refusals, losses and waits over the last minutes as plots, and the log below. */
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatDuration } from "../text/duration.js";
import { type CountBucket, bucketsOf, lossesOf, refusalsSince } from "../activity.js";
import type { Line, LocksData } from "../data.js";
import { Audit, Events } from "./events.js";
import { HistoryNote, SpanChoice, SPANS } from "./history.js";
import { type ViewProps, SharedContext, useIsKnown, useNow, usePolled, useWidth } from "./hooks.js";
import { type Content, html } from "./html.js";
import { EventChoice, isOf, TextFilter } from "./filters.js";
import { empty, Freshness } from "./parts.js";
import { filtersOf } from "./route.js";
import { whenText } from "./words.js";

/** The number of parts of the time. */
const PARTS = 60;
const PLOT_PX = 84;

export function ActivityView({ about, lines, logFromMs, polledLines: polled, query }: ViewProps): Content {
  const [spanMs, setSpan] = useState<number>(SPANS[0]);
  const isKnown = useIsKnown(polled);
  // A look at the list tells the leases that ran out, of which the log has no line yet.
  const looked = usePolled<LocksData>(logFromMs === undefined ? undefined : "locks", { max: 1 }, about.pollMs);
  const losses = useMemo(() => lossesOf(lines, looked.data?.figures.ranOut, looked.atMs), [lines, looked.data]);
  const { filters, set } = filtersOf({ place: "activity", query }, { prefix: "", owner: "", event: "" });
  const fits = useMemo(
    () => lines.filter((line) => line.key.startsWith(filters.prefix) && isOf(line, filters)),
    [lines, filters.prefix, filters.owner, filters.event],
  );
  const title = html`<h1 class="visually-hidden">Activity</h1>`;
  if (logFromMs === undefined)
    return html`<main id="main" tabindex="-1">
      ${title}${empty("The log is not read here", "The stack's dashboard has these plots.")}
    </main>`;
  const part = (name: "prefix" | "owner", label: string, placeholder: string): Content => {
    const onChange = (value: string): void => set({ [name]: value });
    return html`<${TextFilter} ...${{ label, placeholder, onChange }} value=${filters[name]} isFirst=${name === "prefix"} />`;
  };
  return html`<main id="main" tabindex="-1">
    ${title}
    <${Freshness} polled=${looked.error ? looked : polled} />
    <div class="bar-of-spans">${SpanChoice({ spanMs, setSpan })}<${HistoryNote} logFromMs=${logFromMs} /></div>
    <${Plots} lines=${lines} losses=${losses} spanMs=${spanMs} knownUntilMs=${isKnown ? undefined : polled.atMs} />
    <section class="panel" aria-label="Operators">
      <header><h2>Breaks and resets</h2></header>
      <${Audit} lines=${lines} />
    </section>
    <section class="panel" aria-label="Log">
      <h2 class="visually-hidden">Log</h2>
      <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
        ${part("prefix", "Key begins with", "ORDER_")} ${part("owner", "Owner (exact match)", "worker-7")}
        ${EventChoice({ value: filters.event, onChange: (event) => set({ event }) })}
      </form>
      <${Log} lines=${fits} of=${JSON.stringify(filters)} />
    </section>
  </main>`;
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

/** The plots of the time up to now, or up to the last answer if that is old: a time without lines must not look like one without events. */
function Plots(props: {
  readonly lines: readonly Line[];
  readonly losses: readonly number[];
  readonly spanMs: number;
  readonly knownUntilMs: number | undefined;
}): Content {
  const { lines, losses, spanMs, knownUntilMs } = props;
  const { isUtc } = useContext(SharedContext);
  const stepMs = spanMs / PARTS;
  const presentMs = useNow(Math.max(1000, stepMs / 4));
  const nowMs = knownUntilMs ?? presentMs;
  const when = (timeMs: number): string => whenText(timeMs, presentMs, isUtc);
  const until = knownUntilMs === undefined ? "now" : when(knownUntilMs);
  // Whole steps, so that a bar doesn't change while it moves.
  const fromMs = (Math.floor(nowMs / stepMs) + 1 - PARTS) * stepMs;
  const buckets = useMemo(() => bucketsOf(lines, losses, fromMs, stepMs, PARTS), [lines, losses, fromMs, stepMs]);
  const reasons = useMemo(() => refusalsSince(lines, fromMs), [lines, fromMs]);
  const refusals = reasons.slice(0, 3).map(([reason, count]) => `${reason} ${count}`);
  const during = knownUntilMs === undefined ? `in the last ${formatDuration(spanMs)}` : `in the ${formatDuration(spanMs)} before ${until}`;
  const plot = (title: string, tone: string, value: PlotProps["value"], note: string): Content =>
    html`<${Plot} ...${{ title, tone, value, note, buckets, stepMs, until, when }} />`;
  return html`<div class="plots">
    ${plot("Grants", "held", "granted", during)} ${plot("Refusals", "late", "refused", refusals.join(" · ") || "none")}
    ${plot("Losses", "over", "lost", "leases of locks that ran out or were broken")}
    ${plot("Longest wait", "waiting", "longestWaitMs", "from the request to its grant")}
  </div>`;
}

interface PlotProps {
  readonly title: string;
  readonly tone: string;
  readonly value: Exclude<keyof CountBucket, "fromMs">;
  readonly note: string;
  readonly buckets: readonly CountBucket[];
  readonly stepMs: number;
  /** The end of the time, in words. */
  readonly until: string;
  readonly when: (timeMs: number) => string;
}

/** The counts of one kind, or the longest wait, over the time. */
function Plot({ title, tone, value, note, buckets, stepMs, until, when }: PlotProps): Content {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const values = buckets.map((bucket) => bucket[value]);
  const isTime = value === "longestWaitMs";
  const most = Math.max(...values);
  const longest = most > 0 ? formatDuration(most) : "–";
  const figure = isTime ? longest : String(values.reduce((sum, count) => sum + count, 0));
  const step = width / Math.max(1, buckets.length);
  return html`<section class="panel plot" aria-label=${title}>
    <h2>${title}</h2>
    <p class="figure">${figure}<small>${most === 0 || isTime ? "" : `peak ${most} per ${formatDuration(stepMs)}`}</small></p>
    <div class="bars" ref=${box}>
      ${
        width > 0 &&
        html`<svg width=${width} height=${PLOT_PX + 18} role="img" aria-label=${`${title}: ${figure}, ${note}`}>
          <line class="base" x1="0" x2=${width} y1=${PLOT_PX + 0.5} y2=${PLOT_PX + 0.5} />
          ${buckets.map(({ fromMs, [value]: count }, at) => {
            if (count === 0) return null;
            const height = Math.max(2, (count / most) * (PLOT_PX - 6));
            const [x, y] = [at * step + 0.5, PLOT_PX - height];
            return html`<rect class=${tone} x=${x} y=${y} width=${Math.max(1, step - 1.5)} height=${height} rx="1"
              ><title>${when(fromMs)}: ${isTime ? formatDuration(count) : count}</title></rect
            >`;
          })}
          <text x="0" y=${PLOT_PX + 14}>${when(buckets[0]?.fromMs ?? 0)}</text>
          <text x=${width} y=${PLOT_PX + 14} text-anchor="end">${until}</text>
        </svg>`
      }
    </div>
    <p class="muted note">${note}</p>
  </section>`;
}
