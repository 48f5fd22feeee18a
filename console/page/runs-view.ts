/** The runs by state, and one run. */
import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { formatDuration, formatSeconds } from "../text/duration.js";
import { DEFAULT_ATTEMPTS, hasUsedUp, keptText, type ListedState, neverRuns, nextOf, startedAgoMs, stateOf } from "../text/run-text.js";
import { plain } from "../text/plain-text.js";
import { reasonOf } from "../activity.js";
import type { Line, ListData, RunData, RunOfKey } from "../data.js";
import { lanesOf, withPresent } from "../lanes.js";
import { thatFit } from "../overview.js";
import { occurrenceOf } from "../schedules.js";
import { serviceNowMs } from "./clock.js";
import { ResetDialog } from "./dialog.js";
import { Choice, Search } from "./filters.js";
import { History, useOwnLines } from "./history.js";
import { type OneProps, type ViewProps, SharedContext, doneWith, useIsKnown, usePolled } from "./hooks.js";
import { type Content, html } from "./html.js";
import { changeButton, chip, empty, fact, Freshness, head, keyName, LeaseBar, mark, ownerName, tryIt } from "./parts.js";
import { useList } from "./list.js";
import { KEY_POLL_MS } from "./poll.js";
import { hrefOf, listHref } from "./route.js";
import { ScheduleView, toneOfRun } from "./schedule-view.js";
import { FIT } from "./timeline.js";
import { messageOf, whenText } from "./words.js";

const STATES = [
  ["", "All"],
  ["running", "Running"],
  ["interrupted", "Interrupted"],
  ["failed", "Failed"],
  ["skipped", "Skipped"],
  ["too-late", "Too late"],
  ["succeeded", "Succeeded"],
] as const satisfies readonly (readonly [ListedState | "", string])[];

const FILTERS = { find: "", state: "", all: "" };

/** When the answer arrived, and how times are shown. */
interface AnswerTime {
  readonly atMs: number;
  readonly isUtc: boolean;
}

/** Returns a time of day, and how long ago that is; `–` if it isn't known. */
function atText(agoMs: number | undefined, { isUtc, atMs }: AnswerTime): string {
  return agoMs === undefined ? "–" : `${whenText(atMs - agoMs, atMs, isUtc)} (${formatSeconds(agoMs)} ago)`;
}

/** Returns what happens next to an interrupted run, and since when; `""` of any other. */
function noteOf(run: RunOfKey, answer: AnswerTime): string {
  const { state, endedAgoMs } = run;
  if (state !== "interrupted") return "";
  return `${endedAgoMs === undefined ? "" : `ended at ${atText(endedAgoMs, answer)}; `}${nextOf(run)}`;
}

/** The list of runs. Those that need a person come first, however far behind the others their keys are. */
export function RunsView({ about, query, exhausted }: ViewProps): Content {
  const { filters, set, polled, age, partOf, none, more } = useList<ListData<RunOfKey>, typeof FILTERS>("runs", about, query, FILTERS);
  const { isUtc } = useContext(SharedContext);
  const { data, atMs = 0 } = polled;
  const isFailed = filters.state === "" || filters.state === "failed";
  const first = isFailed ? thatFit(exhausted?.items ?? [], filters.find.trim()) : [];
  const rows = [...first, ...(data?.items ?? []).filter(({ key }) => !first.some((run) => run.key === key))];
  // A row may stand for all occurrences of its schedule.
  const hidden = rows.reduce((sum, { schedule }) => sum + (schedule?.occurrences ?? 1) - 1, 0);
  const fits = Math.max(rows.length, data?.fits ?? 0) + hidden;
  return html`<main id="main" tabindex="-1">
    <h1 class="visually-hidden">Runs</h1>
    <${Search} label="Find a key or an owner" value=${filters.find} onChange=${(find: string) => set({ find })} place="runs">
      ${Choice({ label: "State", value: filters.state, choices: STATES, onChange: (state) => set({ state }) })}
      <p class="count" role="status">${data && `${fits}${data.more ? " or more" : ""} ${fits === 1 ? "run" : "runs"}`}</p>
    </${Search}>
    <${Freshness} polled=${polled} />
    ${partOf("Searched", "runs")}
    ${data && (rows.length > 0 ? table() : none(() => nothing(data)))}
    ${!data && !polled.error && html`<p class="loading">Reading the runs…</p>`}
    ${more("runs")}
  </main>`;

  function table(): Content {
    return html`<table class=${`rows runs ${age}`}>
      ${head("Key", "State", ["Attempt", "number"], "Started", "Took", "By")}
      <tbody>
        ${rows.map((run) => row(run, { isUtc, atMs }))}
      </tbody>
    </table>`;
  }

  function nothing({ read, more: hasMore }: ListData<RunOfKey>): Content {
    if (filters.find + filters.state === "" && !hasMore) return empty("There are no runs", tryIt(about, "once demo -- date"));
    const clear = html`<button type="button" onClick=${() => set({ find: "", state: "" })}>Clear the filter</button>`;
    return empty(hasMore ? `None of the first ${read} runs fits` : "No run fits the filter", clear);
  }
}

function row(run: RunOfKey, answer: AnswerTime): Content {
  const { owner, tookMs } = run;
  const why = neverRuns(run) === undefined ? (run.errorName ?? "") : "";
  const small = run.error === undefined ? noteOf(run, answer) || plain(why) : plain(messageOf(run.error));
  const started = startedAgoMs(run);
  return html`<tr key=${run.key} class=${toneOfRun(run)}>
    <th scope="row">
      <a class="row-link" href=${hrefOf("runs", run.key)}>${mark(toneOfRun(run))}${keyName(run.key, run.parts)}</a>
      ${run.schedule && html`<small class="others">${othersOf(run.schedule)}</small>`}
    </th>
    <td data-label="State">
      ${hasUsedUp(run) ? html`<strong class="lost">${stateOf(run)}</strong>` : stateOf(run)}
      ${small !== "" && html`<small class="error muted"><bdi>${small}</bdi></small>`}
    </td>
    <td data-label="Attempt" class="number">${run.attempt}${run.takeover && html` <span class="tag">takeover</span>`}</td>
    <td data-label="Started" class=${started === undefined ? "muted none" : ""}>${atText(started, answer)}</td>
    <td data-label="Took" class=${tookMs === undefined ? "muted none" : ""}>${tookMs === undefined ? "–" : formatDuration(tookMs)}</td>
    <td data-label="By" class=${owner === undefined ? "muted none" : "wide"}>${owner === undefined ? "–" : ownerName(owner)}</td>
  </tr>`;
}

/** Says how many occurrences of its schedule a row stands for, and leads to all of them. */
function othersOf({ name, occurrences, failed }: NonNullable<RunOfKey["schedule"]>): Content {
  const text = `the last of ${occurrences}${failed > 0 ? `, ${failed} failed` : ""}`;
  return html`<a href=${hrefOf("runs", name)}>${text}</a>`;
}

export function RunView(props: OneProps): Content {
  const { about, name } = props;
  const [isSchedule, setSchedule] = useState(false);
  const polled = usePolled<RunData>(isSchedule ? undefined : "run", { key: name }, Math.min(about.pollMs, KEY_POLL_MS));
  const isNowSchedule = polled.data?.isSchedule === true;
  useEffect(() => {
    if (isNowSchedule) setSchedule(true);
  }, [isNowSchedule]);
  const [isResetting, setResetting] = useState(false);
  const run = polled.data?.run ?? undefined;
  const isKnown = useIsKnown(polled);
  const { isUtc } = useContext(SharedContext);
  const knownUntilMs = isKnown ? undefined : polled.atMs;
  const log = useOwnLines(props, "run");
  const { own } = log;
  const lanes = useMemo(() => drawn(own, run, polled.atMs), [own, run, polled.atMs]);
  if (isSchedule) return html`<${ScheduleView} ...${props} />`;
  return html`<main id="main" tabindex="-1">
    <p class="back"><a href=${listHref("runs")} data-back>‹ Runs</a></p>
    <div class="title">
      <h1>${keyName(name, run?.parts)}</h1>
      ${run && (isKnown ? chip(toneOfRun(run), stateOf(run)) : chip("unknown"))}
      ${about.canChange && run && run.state !== "running" && changeButton("Reset…", isKnown, () => setResetting(true), { "data-change": true })}
    </div>
    <${Freshness} polled=${polled} />
    ${polled.data?.run === null && !isNowSchedule && noRun(isKnown, own, name, isUtc)}
    ${run && html`<div class=${isKnown ? "" : "old"}>${facts(run, { isUtc, atMs: polled.atMs ?? 0 })}</div>`}
    ${(run ?? own.length > 0) && html`<${History} ...${{ ...props, ...log, lanes, knownUntilMs }} title="Attempts" firstSpanMs=${FIT} />`}
    ${isResetting && run && html`<${ResetDialog} run=${run} isKnown=${isKnown} onClose=${() => setResetting(false)} onDone=${doneWith(props, polled)} />`}
  </main>`;
}

/** Says that a key has no run, and as far as its lines tell it, why. */
function noRun(isKnown: boolean, own: readonly Line[], name: string, isUtc: boolean): Content {
  if (!isKnown) return empty("Not known", "By the last answer, this key had no run.");
  const last = own.at(-1);
  const reset =
    last?.event === "reset"
      ? `It was reset at ${whenText(last.atMs, serviceNowMs(), isUtc)}: ${reasonOf(last)}. The next start is a first attempt.`
      : undefined;
  const why = reset ?? (last ? "It ran, and its outcome is forgotten." : "It never ran, or its outcome is forgotten.");
  return empty("This key has no run", html`<bdi>${plain(why)}</bdi>`, html`<a href=${hrefOf("locks", name)}>See the lock of this key</a>`);
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

function facts(run: RunOfKey, answer: AnswerTime): Content {
  const occurrence = occurrenceOf(run.key);
  const { attempt, takeover, owner, fencingToken, remainingMs, tookMs, keptForMs, checkpoint, result, error, resultOmitted } = run;
  const values = [
    ["Checkpoint", checkpoint],
    ["Result", resultOmitted ? "It was too large to be stored." : result],
    ["Error", error],
  ] as const;
  return html`<div class="panels">
    <section class="panel" aria-label="State">
      <header><h2>State</h2></header>
      <dl class="facts">
        ${fact("State", [stateOf(run), noteOf(run, answer)].filter(Boolean).join(", "))}
        ${occurrence && fact("Occurrence of", html`<a href=${hrefOf("runs", occurrence.schedule)}>${keyName(occurrence.schedule)}</a>`)}
        ${fact("Started", atText(startedAgoMs(run), answer))} ${tookMs !== undefined && fact("Took", formatDuration(tookMs))}
        ${keptForMs !== undefined && fact("Kept for", keptText(run))}
        ${fact("Attempt", [
          attempt,
          takeover && ", which took over from one that ended without an outcome",
          hasUsedUp(run) && `. The limit is the caller's, ${DEFAULT_ATTEMPTS} by default`,
        ])}
        ${owner !== undefined && fact("By", ownerName(owner))}
        ${remainingMs !== undefined && fact("Lease left", [LeaseBar({ leftMs: remainingMs, leaseMs: undefined, tone: "held" }), " unless it is renewed before"])}
        ${fact("Fencing token", fencingToken, "token")}
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
