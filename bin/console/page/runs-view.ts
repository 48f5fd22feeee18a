/** The runs by state, and one run. */
import { useMemo, useState } from "preact/hooks";
import { lastsOf, stateOf } from "../../inspect/run-text.js";
import type { About, Line, Listed, RunOfKey } from "../data.js";
import { lanesOf, withPresent } from "../lanes.js";
import { ResetDialog } from "./dialog.js";
import { Events } from "./events.js";
import { Choice, TextFilter } from "./filters.js";
import { HistoryBox } from "./history-box.js";
import { HistoryNote, noEvents, nothingText, SpanChoice, SPANS } from "./history.js";
import { useAge, usePolled } from "./hooks.js";
import type { Content } from "./html.js";
import { html } from "./html.js";
import { chip, empty, Freshness, keyName, LeaseBar, mark, ownerName, partOfTable, tryIt } from "./parts.js";
import { KEY_POLL_MS } from "./poll.js";
import { hrefOf, replaceRoute } from "./route.js";
import { legend, Timeline } from "./timeline.js";
import type { Tone } from "./words.js";

const STATES = [
  ["", "All"],
  ["running", "Running"],
  ["interrupted", "Interrupted"],
  ["failed", "Failed"],
  ["succeeded", "Succeeded"],
] as const;

const TONES: Readonly<Record<RunOfKey["state"], Tone>> = { running: "held", interrupted: "late", succeeded: "done", failed: "over" };
const ROWS = { first: 100, most: 500 };

function lasts(run: RunOfKey): string {
  return run.state === "interrupted" ? "the next start takes over" : lastsOf(run);
}

/** The list of runs. */
export function RunsView({ about, query }: { readonly about: About; readonly query: URLSearchParams }): Content {
  const filters = { prefix: query.get("prefix") ?? "", state: query.get("state") ?? "" };
  // Another filter begins at the first key again.
  const from = query.get("from") ?? "";
  const set = (changed: Partial<typeof filters> & { readonly from?: string }): void =>
    replaceRoute(hrefOf("runs", undefined, { ...filters, ...changed }));
  const [max, setMax] = useState(ROWS.first);
  const polled = usePolled<Listed<RunOfKey>>("runs", { ...filters, max, from }, about.pollMs);
  const { items = [], more = false, unreadFrom } = polled.data ?? {};
  const isWhole = from === "" && unreadFrom === undefined;
  return html`<main id="main" tabindex="-1">
    <h1 class="visually-hidden">Runs</h1>
    <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
      <${TextFilter}
        label="Key begins with"
        value=${filters.prefix}
        placeholder="REFUND_"
        isFirst
        onChange=${(prefix: string) => set({ prefix })}
      />
      ${Choice({ label: "State", value: filters.state, choices: STATES, onChange: (state) => set({ state }) })}
      <p class="count" role="status">${polled.data && `${items.length}${more ? " or more" : ""} ${items.length === 1 ? "run" : "runs"}`}</p>
    </form>
    <${Freshness} polled=${polled} what="runs" />
    ${polled.data && (items.length > 0 ? table(items, polled.error !== undefined) : isWhole ? nothing(about, filters.prefix + filters.state === "", () => set({ prefix: "", state: "" })) : empty("No run that was looked at fits the filter"))}
    ${!polled.data && !polled.error && html`<p class="loading">Reading the runs…</p>`}
    ${!isWhole && partOfTable(from, unreadFrom, (key) => set({ from: key }))}
    ${more && unreadFrom === undefined && max < ROWS.most && html`<p class="more"><button type="button" onClick=${() => setMax(max + ROWS.first)}>Show more runs</button></p>`}
    ${more && unreadFrom === undefined && max >= ROWS.most && html`<p class="more muted">There are more than these ${ROWS.most}. Give a longer prefix.</p>`}
  </main>`;
}

function nothing(about: About, isAll: boolean, clear: () => void): Content {
  if (isAll)
    return empty(
      "There are no runs",
      "Work that happens once per key, such as a payment, appears here.",
      tryIt(about, "once demo -- date"),
    );
  return empty("No run fits the filter", html`<button type="button" onClick=${clear}>Clear the filter</button>`);
}

function table(items: readonly RunOfKey[], isOld: boolean): Content {
  return html`<table class=${`rows runs ${isOld ? "old" : ""}`}>
    <thead>
      <tr>
        <th scope="col">Key</th>
        <th scope="col">State</th>
        <th scope="col" class="number">Attempt</th>
        <th scope="col">Owner</th>
        <th scope="col">Time</th>
      </tr>
    </thead>
    <tbody>
      ${items.map(
        (run) =>
          html`<tr key=${run.key} class=${TONES[run.state]}>
            <th scope="row">
              <a class="row-link" href=${hrefOf("runs", run.key)}>${mark(TONES[run.state])}${keyName(run.key, run.parts)}</a>
            </th>
            <td data-label="State">${stateOf(run)}</td>
            <td data-label="Attempt" class="number">${run.attempt}${run.takeover && html` <span class="tag">takeover</span>`}</td>
            <td data-label="Owner" class=${run.state === "running" ? "" : "muted none"}>
              ${run.state === "running" ? ownerName(run.owner) : "–"}
            </td>
            <td data-label="Time" class=${lasts(run) === "" ? "none" : ""}>${lasts(run)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

/** One run. */
export function RunView(given: {
  readonly about: About;
  readonly name: string;
  readonly lines: readonly Line[];
  readonly logFromMs: number | undefined;
  readonly announce: (news: string) => void;
}): Content {
  const { about, name, lines, logFromMs, announce } = given;
  const polled = usePolled<{ readonly run: RunOfKey | null }>("run", { key: name }, Math.min(about.pollMs, KEY_POLL_MS));
  const [spanMs, setSpan] = useState<number>(SPANS[1]);
  const [isResetting, setResetting] = useState(false);
  const run = polled.data?.run ?? undefined;
  const { isKnown } = useAge(polled);
  const [found, setFound] = useState<readonly Line[]>([]);
  const own = useMemo(() => [...found, ...lines].filter(({ key, kind }) => key === name && kind === "run"), [found, lines, name]);
  const lanes = useMemo(() => drawn(own, run, polled.atMs), [own, run, polled.atMs]);
  const done = (news: string): void => {
    announce(news);
    polled.again();
  };
  return html`<main id="main" tabindex="-1">
    <p class="back"><a href=${hrefOf("runs")} data-back>‹ Runs</a></p>
    <div class="title">
      <h1>${keyName(name, run?.parts)}</h1>
      ${run && (isKnown ? chip(TONES[run.state], stateOf(run)) : chip("unknown"))}
      ${about.canChange && run && run.state !== "running" && html`<button type="button" class="danger quiet" data-change disabled=${!isKnown} onClick=${() => setResetting(true)}>Reset…</button>`}
    </div>
    <${Freshness} polled=${polled} what="data" />
    ${polled.data?.run === null && empty("This key has no run", "It never ran, or its outcome is forgotten.", html`<a href=${hrefOf("locks", name)}>See the lock of this key</a>`)}
    ${run && html`<div class=${isKnown ? "" : "old"}>${facts(run)}</div>`}
    ${
      (run ?? own.length > 0) &&
      html`<section class="panel" aria-label="Timeline">
          <header>
            <h2>Attempts</h2>
            ${SpanChoice({ spanMs, setSpan })}
          </header>
          <${Timeline}
            lanes=${lanes}
            spanMs=${spanMs}
            name=${name}
            nothing=${nothingText(logFromMs)}
            knownUntilMs=${isKnown ? undefined : polled.atMs}
          />
          ${legend()}
        </section>
        <section class="panel" aria-label="Events">
          <header>
            <h2>Events</h2>
            ${HistoryNote({ logFromMs })}
          </header>
          ${own.length > 0 ? html`<${Events} lines=${own} withKey=${false} label="Events of this run" />` : noEvents(logFromMs)}
          ${logFromMs === undefined && html`<${HistoryBox} name=${name} where=${about.where} onLines=${setFound} />`}
        </section>`
    }
    ${isResetting && html`<${ResetDialog} runKey=${name} isKnown=${isKnown} onClose=${() => setResetting(false)} onDone=${done} />`}
  </main>`;
}

function drawn(own: readonly Line[], run: RunOfKey | undefined, atMs: number | undefined) {
  const lanes = lanesOf(own);
  if (!run || atMs === undefined) return lanes;
  const { owner = "", fencingToken, heldMs, remainingMs, endedAgoMs } = run;
  const present = heldMs === undefined ? [] : [{ fencingToken, owner, heldMs }];
  const gone = endedAgoMs === undefined ? undefined : { lapsedAtMs: atMs - endedAgoMs };
  return withPresent(lanes, present, atMs, (token) => (token === fencingToken ? gone : undefined)).map((lane) =>
    lane.hold?.fencingToken === fencingToken && remainingMs !== undefined ? { ...lane, lastsUntilMs: atMs + remainingMs } : lane,
  );
}

function facts(run: RunOfKey): Content {
  const { attempt, takeover, owner, fencingToken, remainingMs, checkpoint, result, error, resultOmitted } = run;
  const values = [
    ["Checkpoint", checkpoint],
    ["Result", resultOmitted ? "It was too large to be stored." : result],
    ["Error", error],
  ] as const;
  return html`<div class="panels">
    <section class="panel" aria-label="State">
      <header><h2>State</h2></header>
      <dl class="facts">
        <div>
          <dt>State</dt>
          <dd>${[...(run.state === "running" ? [] : [stateOf(run)]), lasts(run)].filter(Boolean).join(", ")}</dd>
        </div>
        <div>
          <dt>Attempt</dt>
          <dd>${attempt}${takeover && ", which took over from one that ended without an outcome"}</dd>
        </div>
        ${
          run.state === "running" &&
          html`<div>
            <dt>Owner</dt>
            <dd>${ownerName(owner)}</dd>
          </div>`
        }
        ${
          remainingMs !== undefined &&
          html`<div>
            <dt>Lease left</dt>
            <dd>${LeaseBar({ leftMs: remainingMs, leaseMs: undefined, tone: "held" })} unless it is renewed before</dd>
          </div>`
        }
        <div>
          <dt>Fencing token</dt>
          <dd class="token">${fencingToken}</dd>
        </div>
      </dl>
    </section>
    <section class="panel" aria-label="Values">
      <header><h2>Values</h2></header>
      ${values.map(
        ([title, value]) =>
          value !== undefined &&
          html`<h3>${title}</h3>
            <pre tabindex="0">${value}</pre>`,
      )}
      ${values.every(([, value]) => value === undefined) && empty("Nothing is stored yet")}
    </section>
  </div>`;
}
