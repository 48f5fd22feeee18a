/** The time that a picture shows, and from when on the log is known. */
import { useContext } from "preact/hooks";
import { formatDuration } from "../../duration.js";
import { SharedContext } from "./hooks.js";
import type { Content } from "./html.js";
import { html } from "./html.js";
import { empty } from "./parts.js";
import { timeText } from "./words.js";

/** The choices of time, in ms. */
export const SPANS = [60_000, 600_000, 3_600_000, 86_400_000] as const;

/** Chooses the time. */
export function SpanChoice({ spanMs, setSpan }: { readonly spanMs: number; readonly setSpan: (spanMs: number) => void }): Content {
  return html`<div class="spans" role="group" aria-label="Time shown">
    ${SPANS.map((ms) => html`<button type="button" aria-pressed=${ms === spanMs} onClick=${() => setSpan(ms)}>${formatDuration(ms)}</button>`)}
  </div>`;
}

/** Says from when on the log is known, or that it is not. */
export function HistoryNote({ logFromMs }: { readonly logFromMs: number | undefined }): Content {
  return html`<${Note} logFromMs=${logFromMs} />`;
}

function Note({ logFromMs }: { readonly logFromMs: number | undefined }): Content {
  const { isUtc } = useContext(SharedContext);
  return html`<span class="muted"
    >${logFromMs === undefined ? "without a log: what this page saw" : `Log since ${timeText(logFromMs, isUtc)}`}</span
  >`;
}

/** Returns the text of a picture in which nothing is. Without a log, it is not known that nothing happened. */
export function nothingText(logFromMs: number | undefined): string {
  return logFromMs === undefined ? "this page saw no lease in this time" : "the log has no lease of this time";
}

/** Says that no event is known. */
export function noEvents(logFromMs: number | undefined): Content {
  return empty(logFromMs === undefined ? "What happened before is not known here" : "No events since this log began");
}
