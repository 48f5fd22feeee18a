/** Where the history of a key is, if the console has no log of its own: a query to copy, or to run. */
import { useEffect, useState } from "preact/hooks";
import type { History, Line } from "../data.js";
import { read } from "./api.js";
import { type Content, html } from "./html.js";
import { Copyable } from "./parts.js";

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
export function HistoryBox(props: {
  readonly name: string;
  /** The address of the service. */
  readonly where: string;
  readonly onLines: (lines: readonly Line[]) => void;
}): Content {
  const { name, where, onLines } = props;
  const [history, setHistory] = useState<History>();
  const [status, setStatus] = useState("");
  const isLocal = LOCAL.test(where);
  const ask = (since: number, when: string): void => {
    const end = new AbortController();
    if (since > 0) setStatus("Reading the log…");
    read<History>("history", { key: name, ...(since > 0 && { since }) }, end.signal).then(
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
        The service's own console reads its log:
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

function whereText(history: History | undefined): Content {
  if (!history?.canRun) return html`Paste this query into Logs Insights, for the stack's <code>LogGroupName</code>.`;
  return html`Log group <code>${history.logGroup}</code>. CloudWatch charges for each read, by the size of the log.`;
}
