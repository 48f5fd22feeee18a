/** Is anything wrong? Four figures, and the keys and runs that need a person, each with a sentence. */
import { formatSeconds } from "../../duration.js";
import { plain } from "../../plain-text.js";
import { DEFAULT_ATTEMPTS, stateOf } from "../../inspect/run-text.js";
import { isLoss } from "../activity.js";
import type { KeyView, LocksData, RunOfKey } from "../data.js";
import { longestWaitMs, LOOKS_MAX } from "../overview.js";
import { type Polled, type Since, type ViewProps, useIsKnown } from "./hooks.js";
import { type Children, type Content, html } from "./html.js";
import { keyName, mark } from "./parts.js";
import { hrefOf } from "./route.js";
import { keyTone, sentence, stateText } from "./words.js";

/** The time over which losses are counted, in ms. */
const LOSSES_MS = 600_000;

/** The figures. The last one comes from the log, and where there is none, from the runs. */
export function Figures(props: ViewProps & { readonly data: LocksData; readonly atMs: number; readonly age: string }): Content {
  const { data, atMs, age, exhausted, lines, logFromMs } = props;
  const { held, waiting, waitedFor, late } = data.figures;
  const losses = lines.filter((line) => line.kind === "lock" && line.atMs >= atMs - LOSSES_MS && isLoss(line)).length;
  const refused = exhausted?.items.length ?? 0;
  const onKeys = waitedFor > 0 ? `, on ${waitedFor} ${waitedFor === 1 ? "key" : "keys"}` : "";
  return html`<ul class="figures ${age}" aria-label="Figures">
    ${figure(held, `${held === 1 ? "key" : "keys"} held${data.more ? ", of those read" : ""}`, "")}
    ${figure(waiting, `${waiting === 1 ? "caller" : "callers"} waiting${onKeys}`, "wait")}
    ${figure(late, `${late === 1 ? "holder" : "holders"} not renewed in time`, "late")}
    ${
      logFromMs === undefined
        ? figure(refused, `${refused === 1 ? "run" : "runs"} out of attempts`, "over")
        : figure(losses, `${losses === 1 ? "lease" : "leases"} lost in the last 10 min`, "over")
    }
  </ul>`;
}

function figure(count: number, text: string, tone: string): Content {
  return html`<li><strong class=${count > 0 ? tone : ""}>${count}</strong> ${text}</li>`;
}

/** The keys and runs that need a person; nothing if there are none, or if the answer is old: then who may be dead is not known. */
export function NeedsALook(
  props: ViewProps & { readonly data: LocksData; readonly polled: Polled<LocksData>; readonly sinceOf: Since },
): Content | null {
  const { data, polled, exhausted, sinceOf } = props;
  const isKnown = useIsKnown(polled);
  const runs = exhausted?.items ?? [];
  const others = data.looksInAll - data.looks.length + Math.max(0, runs.length - LOOKS_MAX);
  if (!isKnown || data.looks.length + runs.length === 0) return null;
  return html`<section class="panel looks" aria-label="Needs a look">
    <header>
      <h2>Needs a look</h2>
    </header>
    <ul>
      ${data.looks.map((view) => keyRow(view, sinceOf))} ${runs.slice(0, LOOKS_MAX).map(runRow)}
    </ul>
    ${others > 0 && html`<p class="muted">${others} more of these are in the lists.</p>`}
  </section>`;
}

function attentionRow(href: string, tone: Parameters<typeof mark>[0], name: Content, text: Children, next: Children): Content {
  return html`<li key=${href} class=${tone}>
    <span class="name">${mark(tone)}${name}</span>
    <div>
      <p>${text}</p>
      ${next !== "" && html`<p class="muted">${next}</p>`}
    </div>
    <a class="button" href=${href}>Open<span class="visually-hidden"> ${name}</span></a>
  </li>`;
}

function keyRow(view: KeyView, sinceOf: Since): Content {
  const { key, parts, holders, waiters } = view;
  const [first] = holders;
  const text = stateText(view, (lastsMs) => `${first ? `since ${sinceOf(key, first)} ` : "for "}(${formatSeconds(lastsMs)})`);
  const waiting = waiters.length > 0 ? `The longest wait is ${formatSeconds(longestWaitMs(view))}.` : "";
  return attentionRow(hrefOf("locks", key), keyTone(view), keyName(key, parts), html`<bdi>${sentence(text)}</bdi>`, waiting);
}

function runRow(run: RunOfKey): Content {
  const { key, parts, error } = run;
  const text = html`The run has <strong class="lost">${stateOf(run)}</strong>. The limit is the caller's, ${DEFAULT_ATTEMPTS} by default.`;
  return attentionRow(
    hrefOf("runs", key),
    "over",
    keyName(key, parts),
    text,
    error === undefined ? "" : html`<bdi>${plain(messageOf(error))}</bdi>`,
  );
}

/** Returns the message of a stored error, or all of it if it has none. */
export function messageOf(error: string): string {
  try {
    const { message } = JSON.parse(error) as { readonly message?: unknown };
    return typeof message === "string" ? message : error;
  } catch {
    return error; // It was cut.
  }
}
