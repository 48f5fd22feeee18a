/** The panels of a key or a run: its leases as a picture, its lines of the log, and from when on the log is known. */
import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { formatDuration } from "../text/duration.js";
import { plain } from "../text/plain-text.js";
import type { History as KeyHistory, Line } from "../data.js";
import { firstSpan } from "../lanes.js";
import { read } from "./api.js";
import { serviceNowMs } from "./clock.js";
import { Events } from "./events.js";
import { Choice, EventChoice, isOf } from "./filters.js";
import { type OneProps, SharedContext, useNow } from "./hooks.js";
import { type Children, type Content, html } from "./html.js";
import { Copyable, empty } from "./parts.js";
import { filtersOf, useRoute } from "./route.js";
import { type DrawnLane, FIT, legend, Timeline } from "./timeline.js";
import { whenText } from "./words.js";

/** The choices of time, in ms. */
export const SPANS = [60_000, 600_000, 3_600_000, 86_400_000] as const;

/** Chooses the time. */
export function SpanChoice(props: {
  readonly spans?: readonly number[];
  readonly spanMs: number;
  readonly setSpan: (spanMs: number) => void;
}): Content {
  const { spans = SPANS, spanMs, setSpan } = props;
  return html`<div class="spans" role="group" aria-label="Time shown">
    ${spans.map((ms) => html`<button type="button" aria-pressed=${ms === spanMs} onClick=${() => setSpan(ms)}>${ms === FIT ? "all" : formatDuration(ms)}</button>`)}
  </div>`;
}

/** Says from when on the log is known, or that it is not. */
export function HistoryNote({ logFromMs }: { readonly logFromMs: number | undefined }): Content {
  const { isUtc } = useContext(SharedContext);
  return html`<span class="muted"
    >${logFromMs === undefined ? "without a log: what this page saw" : `Log since ${whenText(logFromMs, serviceNowMs(), isUtc)}`}</span
  >`;
}

/** The events of a kind or an owner, as the address says. */
function FilteredEvents({ name, own }: { readonly name: string; readonly own: readonly Line[] }): Content {
  const { filters, set } = filtersOf({ ...useRoute(), key: name }, { event: "", owner: "" });
  const owners = new Set(["", filters.owner, ...own.map(({ owner = "" }) => owner)]);
  const choices = [...owners].toSorted().map((owner) => [owner, owner === "" ? "All" : plain(owner)] as const);
  const fits = own.filter((line) => isOf(line, filters));
  return html`<form class="filters" onSubmit=${(event: Event) => event.preventDefault()}>
      ${EventChoice({ value: filters.event, onChange: (event) => set({ event }) })}
      ${Choice({ label: "Owner", value: filters.owner, choices, onChange: (owner) => set({ owner }) })}
      <p class="count" role="status">${fits.length < own.length && `${fits.length} of ${own.length} events`}</p>
    </form>
    ${fits.length > 0 ? html`<${Events} lines=${fits} withKey=${false} label=${`Events of ${name}`} />` : empty("No event fits")}`;
}

/** Returns the lines of a name of these kinds: those that a query found, which `add` takes, and those of the console's own log. */
export function useOwnLines({ lines, name }: OneProps, ...kinds: readonly Line["kind"][]) {
  const [found, add] = useState<readonly Line[]>([]);
  const own = useMemo(() => [...found, ...lines].filter((line) => line.key === name && kinds.includes(line.kind)), [found, lines, name]);
  return { own, add };
}

/** The two panels. Below the events stand the children. */
export function History(
  props: Parameters<typeof EventsPanel>[0] & {
    readonly title: string;
    readonly firstSpanMs: number;
    readonly lanes: readonly DrawnLane[];
    /** The time of the last answer, in epoch ms, if that is old. */
    readonly knownUntilMs: number | undefined;
  },
): Content {
  const { name, title, lanes, knownUntilMs, logFromMs } = props;
  const [chosenMs, setSpan] = useState<number>();
  const nowMs = useNow(1000);
  const spanMs = chosenMs ?? firstSpan(lanes, props.firstSpanMs, FIT, nowMs);
  const hasLog = logFromMs !== undefined;
  // Without a log, it is not known that nothing happened.
  const nothing = hasLog ? "the log has no lease of this time" : "this page saw no lease in this time";
  return html`<section class="panel" aria-label="Timeline">
      <header>
        <h2>${title}</h2>
        ${SpanChoice({ spans: [FIT, ...SPANS], spanMs, setSpan })}
      </header>
      <${Timeline} lanes=${lanes} spanMs=${spanMs} name=${name} nothing=${nothing} knownUntilMs=${knownUntilMs} />
      ${legend()}
    </section>
    <${EventsPanel} ...${props} />`;
}

/** The events of a name. Below them stand the children. */
export function EventsPanel(
  props: OneProps &
    ReturnType<typeof useOwnLines> & {
      /** Stands in place of the events if there are none. @default says that none is known */
      readonly otherwise?: Content | undefined;
      readonly children?: Children;
    },
): Content {
  const { about, name, logFromMs, own, add, otherwise } = props;
  const hasLog = logFromMs !== undefined;
  const noEvents = otherwise ?? empty(hasLog ? "No events since this log began" : "What happened before is not known here");
  return html`<section class="panel" aria-label="Events">
    <header>
      <h2>Events</h2>
      <${HistoryNote} logFromMs=${logFromMs} />
    </header>
    ${own.length > 0 ? html`<${FilteredEvents} name=${name} own=${own} />` : noEvents}
    ${!hasLog && html`<${HistoryBox} name=${name} where=${about.where} onLines=${add} />`} ${props.children}
  </section>`;
}

const HOUR_MS = 3_600_000;

/** The times that the query can cover. */
const TIMES = [
  [HOUR_MS, "the last hour"],
  [24 * HOUR_MS, "the last day"],
  [7 * 24 * HOUR_MS, "the last 7 days"],
] as const;

/** True for a service on this machine: its log is in its own console, not in CloudWatch. */
const LOCAL = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/;

/** The box. `onLines` gets what a query found. */
function HistoryBox(props: {
  readonly name: string;
  /** The address of the service. */
  readonly where: string;
  readonly onLines: (lines: readonly Line[]) => void;
}): Content {
  const { name, where, onLines } = props;
  const [history, setHistory] = useState<KeyHistory>();
  const [status, setStatus] = useState("");
  const isLocal = LOCAL.test(where);
  const ask = (since: number, when: string): void => {
    const end = new AbortController();
    if (since > 0) setStatus("Reading the log…");
    read<KeyHistory>("history", { key: name, ...(since > 0 && { since }) }, end.signal).then(
      (answer) => {
        setHistory(answer);
        if (!answer.lines) return;
        onLines(answer.lines);
        setStatus(answer.lines.length === 0 ? `The log has no line of this key in ${when}.` : `${answer.lines.length} lines of ${when}.`);
      },
      (error: unknown) => setStatus(error instanceof Error ? error.message : String(error)),
    );
  };
  useEffect(() => {
    if (!isLocal) ask(0, "");
  }, [name]);
  if (isLocal)
    return html`<div class="history-box">
      <p>
        The service's own console reads its log:${" "}
        <a href=${`http://${where}/console`}>http://${where}/console</a>
      </p>
    </div>`;
  return html`<div class="history-box">
    <p><strong>This key's history is in CloudWatch Logs.</strong> ${whereText(history)}</p>
    ${
      history?.canRun &&
      html`<p class="buttons">
        ${TIMES.map(([sinceMs, when]) => html`<button type="button" onClick=${() => ask(sinceMs, when)}>Read ${when}</button>`)}
      </p>`
    }
    <p role="status">${status}</p>
    ${
      history &&
      html`<details open=${!history.canRun}>
        <summary>The query, for Logs Insights</summary>
        <div class="query"><${Copyable} text=${history.query} /></div>
      </details>`
    }
  </div>`;
}

function whereText(history: KeyHistory | undefined): Content {
  if (!history?.canRun) return html`Paste this query into Logs Insights, for the stack's <code>LogGroupName</code>.`;
  return html`Log group <code>${history.logGroup}</code>. CloudWatch charges for each read, by the size of the log.`;
}
