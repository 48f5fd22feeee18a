/** One key: its state as a sentence, its holders and its queue, and what happened to it. */
import { useContext, useMemo, useRef, useState } from "preact/hooks";
import { formatDuration, formatSeconds } from "../text/duration.js";
import { endText } from "../text/held-text.js";
import type { About, KeyHolder, KeyView as Key, Line } from "../data.js";
import { type Lane, type SeenLease, ending, heldWith, lanesOf, withAnswer, withPresent } from "../lanes.js";
import { serviceNowMs } from "./clock.js";
import { BreakDialog } from "./dialog.js";
import { type OneProps, SharedContext, doneWith, useIsKnown, usePolled } from "./hooks.js";
import { type Children, type Content, html } from "./html.js";
import { bar, changeButton, chip, Copyable, empty, fact, Freshness, head, keyName, LeaseBar, ownerName } from "./parts.js";
import { type Polled, KEY_POLL_MS } from "./poll.js";
import { hrefOf, listHref } from "./route.js";
import type { DrawnLane } from "./timeline.js";
import { History, SPANS, useOwnLines } from "./history.js";
import {
  type LastHold,
  type SinceText,
  type Tone,
  breakCommand,
  keyTone,
  LATE_PART,
  lifeOf,
  sentence,
  stateText,
  toneOf,
  whenText,
} from "./words.js";

export function KeyView(props: OneProps): Content {
  const { about, name } = props;
  const polled = usePolled<Key>("lock", { key: name }, Math.min(about.pollMs, KEY_POLL_MS));
  const { isUtc } = useContext(SharedContext);
  const isKnown = useIsKnown(polled);
  const [isBreaking, setBreaking] = useState(false);
  const view = polled.data?.key === name ? polled.data : undefined;
  const log = useOwnLines(props, "lock");
  const { own } = log;
  const history = useSeen(view, polled);
  const lanes = useMemo(() => (view && polled.atMs !== undefined ? history.draw(own, view, polled.atMs) : []), [own, view, polled.atMs]);
  const { atMs = 0 } = polled;
  const knownUntilMs = isKnown ? undefined : polled.atMs;
  const nowMs = serviceNowMs();
  const at = whenText(atMs, nowMs, isUtc);
  const since: SinceText = (lastsMs) => `since ${whenText(atMs - lastsMs, nowMs, isUtc)} (${formatSeconds(lastsMs)})`;
  // An old answer tells what was so at its time.
  const saidOf = (clause: string): string => (isKnown ? sentence(clause) : `At ${at}: ${clause}. Not known since.`);
  const none = (title: string, ...more: readonly Children[]): Content =>
    isKnown ? empty(title, ...more) : empty("Not known", `At ${at}: ${title.toLowerCase()}.`);
  return html`<main id="main" tabindex="-1">
    <p class="back"><a href=${listHref("locks")} data-back>‹ Locks</a></p>
    <div class="title">
      <h1>${keyName(name, view?.parts)}</h1>
      ${view && chip(shownTone(keyTone(view), isKnown))}
      ${about.canChange && view && view.holders.length > 0 && changeButton("Break…", isKnown, () => setBreaking(true), { "data-change": true })}
    </div>
    <${Freshness} polled=${polled} />
    ${view && html`<p class="sentence"><bdi>${saidOf(stateText(view, since, lastHoldOf(lanes, view, atMs)))}</bdi></p>`}
    ${!about.canChange && isKnown && view && howToBreak(view, about)}
    ${!view && !polled.error && html`<p class="loading">Reading the key…</p>`}
    ${view && html`<div class=${`panels ${isKnown ? "" : "old"}`}>${holdersPanel(view, since, isKnown, none, props.lines)}${queuePanel(view, since, isKnown, none)}</div>`}
    ${
      view &&
      html`<${History} ...${{ ...props, ...log, lanes, knownUntilMs }} title="Timeline" firstSpanMs=${SPANS[0]} otherwise=${endings(view)}>
        <p class="muted">Is this the key of a run? <a href=${hrefOf("runs", name)}>See its run</a>.</p>
      </${History}>`
    }
    ${isBreaking && view && html`<${BreakDialog} view=${view} isKnown=${isKnown} onClose=${() => setBreaking(false)} onDone=${doneWith(props, polled)} />`}
  </main>`;
}

/** A hold as polls showed it. */
interface SeenHold {
  lease: SeenLease;
  /** Its state by the last answer in which it was held. */
  tone: Tone;
  heldAtMs: number;
  goneAtMs?: number | undefined;
  /** The time from which it is late unless it is renewed, in epoch ms. */
  lateFromMs?: number;
  /** The end of its lease, in epoch ms. */
  lapsedAtMs?: number | undefined;
}

/** Returns the hold that ended last, if the lanes tell when and how. A log may lack the lines of callers that use the table directly. */
function lastHoldOf(lanes: readonly Lane[], { fencingToken }: Key, atMs: number): LastHold | undefined {
  const last = lanes
    .filter(({ hold }) => hold)
    .toSorted((a, b) => ending(a) - ending(b))
    .at(-1);
  if (!last?.end || last.end.afterMs !== undefined || last.hold?.fencingToken !== fencingToken) return undefined;
  return { owner: last.owner, endedAgoMs: Math.max(0, atMs - last.end.atMs), ending: last.end.kind };
}

/** Remembers what polls showed of each hold: its renewals, until when its lease lasted, and when that was over. */
function useSeen(view: Key | undefined, { atMs, askedMs = atMs ?? 0 }: Polled<Key>) {
  const holds = useRef(new Map<number, SeenHold>());
  const holdOf = (token: number): SeenHold => {
    const hold = holds.current.get(token) ?? { lease: { lastsUntilMs: 0, renewedAtMs: [] }, tone: "held" as const, heldAtMs: 0 };
    holds.current.set(token, hold);
    return hold;
  };
  if (view && atMs !== undefined) {
    const held = new Set(view.holders.map(({ fencingToken }) => fencingToken));
    for (const [token, hold] of holds.current) if (!held.has(token)) hold.goneAtMs ??= atMs;
    for (const holder of view.holders) {
      const hold = holdOf(holder.fencingToken);
      hold.heldAtMs = atMs;
      hold.lapsedAtMs = undefined;
      hold.goneAtMs = undefined;
      hold.tone = toneOf(holder);
      hold.lease = withAnswer(hold.lease, holder, { askedMs, atMs });
      hold.lateFromMs = hold.lease.lastsUntilMs - holder.leaseMs * (1 - LATE_PART);
    }
    for (const { fencingToken, endedAgoMs } of view.lapsed ?? []) {
      const hold = holdOf(fencingToken);
      // Each answer is some time on its way: the earliest end that one tells is the nearest to the truth.
      hold.lapsedAtMs = Math.min(hold.lapsedAtMs ?? Infinity, atMs - endedAgoMs);
    }
  }
  const shown = (token: number) => {
    const { lease, ...hold } = holds.current.get(token) ?? {};
    return { ...hold, ...lease };
  };
  const draw = (own: readonly Line[], { holders }: Key, seenAtMs: number): readonly DrawnLane[] =>
    withPresent(lanesOf(own), holders, seenAtMs, (token) => holds.current.get(token)).map((lane) => ({
      ...lane,
      ...(lane.hold?.fencingToken !== undefined && shown(lane.hold.fencingToken)),
    }));
  return { draw };
}

/** Says how somebody with the right to do so ends the hold, where this page may only read. */
function howToBreak({ key, holders }: Key, { cliOptions }: About): Content | null {
  const [first, second] = holders;
  if (!first) return null;
  return html`<p class="command">
    Read-only. To end ${second ? "the oldest hold" : "this hold"}: <${Copyable} text=${breakCommand(key, first.fencingToken, cliOptions)} />
  </p>`;
}

/** Returns a state that an answer tells, unless the answer is old. */
function shownTone(tone: Tone, isKnown: boolean): Tone {
  return isKnown ? tone : "unknown";
}

/** A notice in place of rows; of an old answer, that they are not known. */
type None = typeof empty;

/** The other keys of a holder's set, as far as the lines tell. */
function setFact({ key }: Key, { fencingToken }: KeyHolder, lines: readonly Line[]): Content | false {
  const links = heldWith(key, fencingToken, lines).map((other) => html`<a href=${hrefOf("locks", other)}>${keyName(other)}</a>`);
  return (
    links.length > 0 &&
    fact(
      "In a set with",
      links.flatMap((link, at) => (at > 0 ? [", ", link] : [link])),
    )
  );
}

/** The holders of a key. Of a key in a set, the lines name the others. */
export function holdersPanel(view: Key, since: SinceText, isKnown: boolean, none: None, lines: readonly Line[] = []): Content {
  const { holders, fencingToken, limit } = view;
  const rows = holders.map((holder) => {
    const tone = shownTone(toneOf(holder), isKnown);
    return html`<li key=${holder.fencingToken}>
      <div class="line"><strong>${ownerName(holder.owner)}</strong> ${holders.length > 1 && chip(tone)}</div>
      ${LeaseBar({ leftMs: holder.remainingMs, leaseMs: holder.leaseMs, tone })}
      <dl>
        ${fact("Held", since(holder.heldMs))}
        ${limit === undefined ? fact("Mode", holder.mode) : fact("Permits", `${holder.permits} of ${limit}`)}
        ${fact("Lease", formatDuration(holder.leaseMs))} ${fact("Fencing token", holder.fencingToken, "token")}
        ${setFact(view, holder, lines)}
      </dl>
      ${holders.length > 1 && isKnown && html`<p class="muted">${sentence(lifeOf(holder, view))}</p>`}
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
        : none("Nobody holds it", last)
    }
  </section>`;
}

/** The number of places that a queue shows at first; the style hides the others, but not on paper. */
const PLACES = 9;

/** The places of a queue: the first, and on demand all. */
function Places({ children }: { readonly children: readonly Content[] }): Content {
  const [isWhole, setWhole] = useState(false);
  const others = children.length - PLACES;
  return html`<ol class=${`queue ${isWhole ? "whole" : ""}`} aria-label="Places in the queue">
      ${children}
    </ol>
    ${!isWhole && others > 0 && html`<p class="more"><button type="button" onClick=${() => setWhole(true)}>${others} more</button></p>`}`;
}

/** The queue of a key. */
export function queuePanel({ waiters, waitSet = [], limit }: Key, since: SinceText, isKnown: boolean, none: None): Content {
  const longest = Math.max(1, ...waiters.map(({ waitingMs }) => waitingMs));
  return html`<section class="panel" aria-label="Queue">
    <header>
      <h2>Queue</h2>
      ${waiters.length > 0 && html`<span class="muted">${isKnown ? `${waiters.length} waiting` : "not known since"}</span>`}
    </header>
    ${
      waiters.length === 0
        ? none("Nobody waits")
        : html`<${Places}>
            ${waiters.map(
              ({ position, owner, mode, permits, priority, waitingMs, offered }) =>
                html`<li key=${position}>
                  <span class="place">${position}</span>
                  <span class="who"
                    >${ownerName(owner)}${offered && html` <span class="tag">offered</span>`}${permits !== undefined && html` <span class="tag">${permits} of ${limit}</span>`}${mode === "shared" && html` <span class="tag">shared</span>`}${priority > 0 && html` <span class="tag">priority ${priority}</span>`}</span
                  >
                  ${bar(waitingMs / longest, "waiting")}
                  <span class="waited" title=${since(waitingMs)}>${formatDuration(waitingMs)}</span>
                </li>`,
            )}
          </${Places}>`
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
                ><span class="waited">${formatDuration(waitingMs)}</span>
              </li>`,
          )}
        </ul>`
    }
  </section>`;
}

/** The key's own memory, where no line of the log is known. */
function endings({ recent = [] }: Key): Content | undefined {
  if (recent.length === 0) return undefined;
  return html`<table class="rows" aria-label="Leases that ended">
    ${head("Lease asked for", "Ended")}
    <tbody>
      ${recent.map(
        ({ askedAgoMs, ending }) =>
          html`<tr>
            <td>${formatDuration(askedAgoMs)} ago</td>
            <td>${endText(ending)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}
