/** One key: its state as a sentence, its holders and its queue, and what happened to it. */
import { useMemo, useRef, useState } from "preact/hooks";
import { formatDuration } from "../../duration.js";
import type { About, KeyView as Key, Line } from "../data.js";
import { lanesOf, withPresent } from "../lanes.js";
import { BreakDialog } from "./dialog.js";
import { Events } from "./events.js";
import { useNow, usePolled } from "./hooks.js";
import type { Content } from "./html.js";
import { html } from "./html.js";
import { chip, empty, Freshness, keyName, LeaseBar, ownerName } from "./parts.js";
import { KEY_POLL_MS } from "./poll.js";
import { hrefOf, listHref } from "./route.js";
import type { DrawnLane } from "./timeline.js";
import { Timeline } from "./timeline.js";
import { HistoryNote, noEvents, SpanChoice, SPANS } from "./history.js";
import { keyTone, lifeOf, sentenceOf, toneOf } from "./words.js";

/** The view's properties. */
export interface KeyViewProps {
  readonly about: About;
  readonly name: string;
  /** All lines of the log. */
  readonly lines: readonly Line[];
  readonly logFromMs: number | undefined;
  readonly announce: (news: string) => void;
}

/** The view. */
export function KeyView({ about, name, lines, logFromMs, announce }: KeyViewProps): Content {
  const polled = usePolled<Key>("lock", { key: name }, Math.min(about.pollMs, KEY_POLL_MS));
  const nowMs = useNow(1000);
  const [spanMs, setSpan] = useState<number>(SPANS[0]);
  const [isBreaking, setBreaking] = useState(false);
  const view = polled.data?.key === name ? polled.data : undefined;
  const own = useMemo(() => lines.filter(({ key, kind }) => key === name && kind === "lock"), [lines, name]);
  const seen = useSeen(view, polled.atMs);
  const agoMs = Math.max(0, nowMs - (polled.atMs ?? nowMs));
  const lanes = useMemo(() => (view && polled.atMs !== undefined ? seen.draw(own, view, polled.atMs) : []), [own, view, polled.atMs]);
  const tone = view ? keyTone(view, agoMs) : "free";
  const done = (news: string): void => {
    announce(news);
    polled.again();
  };
  return html`<main id="main" tabindex="-1">
    <p class="back"><a href=${listHref("locks")} data-back>‹ Locks</a></p>
    <div class="title">
      <h1>${keyName(name, view?.parts)}</h1>
      ${view && chip(tone)}
      ${about.canChange && view && view.holders.length > 0 && html`<button type="button" class="danger quiet" data-change onClick=${() => setBreaking(true)}>Break…</button>`}
    </div>
    <${Freshness} polled=${polled} what="data" />
    ${view && html`<p class="sentence"><bdi>${sentenceOf(view, agoMs)}</bdi></p>`}
    ${!view && !polled.error && html`<p class="loading">Reading the key…</p>`}
    ${view && html`<div class="panels">${holdersPanel(view, agoMs)}${queuePanel(view, agoMs)}</div>`}
    ${
      view &&
      html`<section class="panel" aria-label="Timeline">
        <header>
          <h2>Timeline</h2>
          ${SpanChoice({ spanMs, setSpan })}
        </header>
        <${Timeline} lanes=${lanes} spanMs=${spanMs} name=${name} />
        ${legend()}
      </section>`
    }
    ${
      view &&
      html`<section class="panel" aria-label="Events">
        <header>
          <h2>Events</h2>
          ${HistoryNote({ logFromMs })}
        </header>
        ${own.length > 0 ? html`<${Events} lines=${own} withKey=${false} label="Events of this key" />` : endings(view, logFromMs)}
        <p class="muted">Is this the key of a run? <a href=${hrefOf("runs", name)}>See its run</a>.</p>
      </section>`
    }
    ${isBreaking && view && html`<${BreakDialog} view=${view} onClose=${() => setBreaking(false)} onDone=${done} />`}
  </main>`;
}

/** Remembers what polls showed of each hold: its renewals, and until when its lease lasted. */
function useSeen(view: Key | undefined, atMs: number | undefined) {
  const holds = useRef(new Map<number, { lastsUntilMs: number; renewedAtMs: number[] }>());
  if (view && atMs !== undefined) {
    for (const { fencingToken, remainingMs, leaseMs, heldMs } of view.holders) {
      const hold = holds.current.get(fencingToken) ?? { lastsUntilMs: 0, renewedAtMs: [] };
      const lastsUntilMs = atMs + remainingMs;
      // Two answers differ by the way of the requests; a renewal moves the end by far more.
      const isRenewed = lastsUntilMs - hold.lastsUntilMs > RENEWED_MS;
      if (isRenewed && leaseMs !== undefined && heldMs > leaseMs - remainingMs + RENEWED_MS) hold.renewedAtMs.push(lastsUntilMs - leaseMs);
      if (isRenewed) hold.lastsUntilMs = lastsUntilMs;
      holds.current.set(fencingToken, hold);
    }
  }
  const draw = (own: readonly Line[], { holders }: Key, seenAtMs: number): readonly DrawnLane[] => {
    const lanes = withPresent(lanesOf(own), holders, seenAtMs, (token) => holds.current.get(token)?.lastsUntilMs);
    return lanes.map((lane) => ({ ...lane, ...(lane.hold?.fencingToken !== undefined && holds.current.get(lane.hold.fencingToken)) }));
  };
  return { draw };
}

/** The smallest shift of a lease's end that is a renewal, in ms. */
const RENEWED_MS = 250;

function holdersPanel({ holders, fencingToken }: Key, agoMs: number): Content {
  const rows = holders.map((holder) => {
    const tone = toneOf(holder, agoMs);
    return html`<li key=${holder.fencingToken}>
      <div class="line"><strong>${ownerName(holder.owner)}</strong> ${holders.length > 1 && chip(tone)}</div>
      ${LeaseBar({ leftMs: holder.remainingMs - agoMs, leaseMs: holder.leaseMs, tone })}
      <dl>
        <div>
          <dt>Held for</dt>
          <dd>${formatDuration(holder.heldMs + agoMs)}</dd>
        </div>
        <div>
          <dt>Mode</dt>
          <dd>${holder.mode}${holder.permits > 1 ? `, ${holder.permits} permits` : ""}</dd>
        </div>
        ${
          holder.leaseMs !== undefined &&
          html`<div>
            <dt>Lease</dt>
            <dd>${formatDuration(holder.leaseMs)}</dd>
          </div>`
        }
        <div>
          <dt>Fencing token</dt>
          <dd class="token">${holder.fencingToken}</dd>
        </div>
      </dl>
      ${holders.length > 1 && html`<p class="muted">${lifeOf(holder, agoMs)}</p>`}
    </li>`;
  });
  const last = fencingToken > 0 ? html`The last grant was under token <span class="token">${fencingToken}</span>.` : "";
  return html`<section class="panel" aria-label="Holders">
    <header><h2>${holders.length > 1 ? `${holders.length} holders` : "Holder"}</h2></header>
    ${
      rows.length > 0
        ? html`<ul class="holders">
            ${rows}
          </ul>`
        : empty("Nobody holds it", last)
    }
  </section>`;
}

function queuePanel({ waiters, waitSet = [] }: Key, agoMs: number): Content {
  const longest = Math.max(1, ...waiters.map(({ waitingMs }) => waitingMs));
  return html`<section class="panel" aria-label="Queue">
    <header>
      <h2>Queue</h2>
      ${waiters.length > 0 && html`<span class="muted">${waiters.length} waiting</span>`}
    </header>
    ${
      waiters.length === 0
        ? empty("Nobody waits")
        : html`<ol class="queue" tabindex="0" aria-label="Places in the queue">
            ${waiters.map(
              ({ position, owner, mode, priority, waitingMs, offered }) =>
                html`<li key=${position}>
                  <span class="place">${position}</span>
                  <span class="who"
                    >${ownerName(owner)}${offered && html` <span class="tag">offered</span>`}${mode === "shared" && html` <span class="tag">shared</span>`}${priority > 0 && html` <span class="tag">priority ${priority}</span>`}</span
                  >
                  <span class="bar thin" aria-hidden="true"
                    ><span class="fill waiting" style=${{ transform: `scaleX(${(waitingMs / longest).toFixed(3)})` }}
                  /></span>
                  <span class="waited">${formatDuration(waitingMs + agoMs)}</span>
                </li>`,
            )}
          </ol>`
    }
    ${
      waitSet.length > 0 &&
      html`<h3>Waiting for a condition</h3>
        <ul class="queue conditions">
          ${waitSet.map(
            ({ owner, condition, waitingMs }) =>
              html`<li>
                <span class="who"
                  >${ownerName(owner)} <span class="tag"><bdi>${condition}</bdi></span></span
                ><span class="waited">${formatDuration(waitingMs + agoMs)}</span>
              </li>`,
          )}
        </ul>`
    }
  </section>`;
}

/** The key's own memory, where no line of the log is known. */
function endings({ recent = [] }: Key, logFromMs: number | undefined): Content {
  if (recent.length === 0) return noEvents(logFromMs);
  return html`<table class="rows" aria-label="Leases that ended">
    <thead>
      <tr>
        <th scope="col">Lease asked for</th>
        <th scope="col">Ended</th>
      </tr>
    </thead>
    <tbody>
      ${recent.map(
        ({ askedAgoMs, ending }) =>
          html`<tr>
            <td>${formatDuration(askedAgoMs)} ago</td>
            <td>${ending}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

function legend(): Content {
  const items = [
    ["wait", "waits"],
    ["hold", "holds"],
    ["future", "lease left"],
    ["renewal", "renewed"],
    ["lost", "lost"],
    ["broken", "broken"],
  ] as const;
  return html`<ul class="legend" aria-hidden="true">
    ${items.map(([kind, text]) => html`<li><i class=${kind}></i>${text}</li>`)}
  </ul>`;
}
