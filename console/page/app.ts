/** The page: its header, the view of its address, and the log that all views share. */
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { About, Exhausted, Line, Lines } from "../data.js";
import { ActivityView } from "./activity-view.js";
import { read } from "./api.js";
import { learnOffset, skewMs } from "./clock.js";
import { Dialog } from "./dialog.js";
import { type PollPart, type Shared, SharedContext, useNow, usePoll, usePolled } from "./hooks.js";
import { type Content, html } from "./html.js";
import { KeyView } from "./key-view.js";
import { type KeyActions, KEYS, useKeys } from "./keys.js";
import { LimitView } from "./limit-view.js";
import { LimitsView } from "./limits-view.js";
import { LocksView } from "./locks-view.js";
import { Freshness, mark } from "./parts.js";
import { type Polled, ABOUT_POLL_MS, EXHAUSTED_POLL_MS } from "./poll.js";
import { type Place, hrefOf, PLACES, useRoute } from "./route.js";
import { RunsView, RunView } from "./runs-view.js";
import { type Status as HeaderStatus, skewText, statusOf } from "./status.js";
import "./style.css";

/** The largest number of lines that the page keeps. */
const LINES_MAX = 10_000;
const LINES_MS = 1000;
/** The views of each place: its list, and one of its keys. */
const VIEWS = {
  locks: { title: "Locks", list: LocksView, one: KeyView },
  runs: { title: "Runs", list: RunsView, one: RunView },
  limits: { title: "Limits", list: LimitsView, one: LimitView },
  activity: { title: "Activity", list: ActivityView, one: ActivityView },
} satisfies Readonly<Record<Place, object>>;

/** Settings that this browser remembers. */
function useSetting(name: string, initial: boolean): readonly [boolean, () => void] {
  const [value, setValue] = useState(() => (localStorage.getItem(`holdfast-${name}`) ?? String(initial)) === "true");
  const toggle = (): void =>
    setValue((before) => {
      localStorage.setItem(`holdfast-${name}`, String(!before));
      return !before;
    });
  return [value, toggle];
}

/** The page. */
export function App(): Content {
  const [isPaused, setPaused] = useState(false);
  const [isUtc, toggleUtc] = useSetting("utc", true);
  const [hasKeys, toggleKeys] = useSetting("keys", true);
  const [isHelping, setHelping] = useState(false);
  const togglePause = (): void => setPaused((before) => !before);
  const polls = useRef<Shared["polls"]>(new Map()).current;
  const actions: KeyActions = { toggleUtc, togglePause, help: () => setHelping(true) };
  useKeys(hasKeys, actions);
  return html`<${SharedContext.Provider} value=${{ isPaused, isUtc, polls }}>
    <${Page} isPaused=${isPaused} isUtc=${isUtc} ...${actions} />
    ${isHelping && html`<${Help} hasKeys=${hasKeys} toggleKeys=${toggleKeys} onClose=${() => setHelping(false)} />`}
  </${SharedContext.Provider}>`;
}

const PAUSED: HeaderStatus = { tone: "waiting", state: "paused", age: "" };

type PageProps = Omit<Shared, "polls"> & KeyActions;

function Page(props: PageProps): Content {
  const route = useRoute();
  const about = usePoll(readAbout, ABOUT_POLL_MS, "about", "service");
  const { lines, polled } = useLines(about.data?.logFromMs !== undefined);
  // A service that charges for its requests is asked seldom.
  const exhaustedMs = about.data?.logFromMs === undefined ? EXHAUSTED_POLL_MS : 2 * about.data.pollMs;
  const { data: exhausted } = usePolled<Exhausted>(about.data && "exhausted", {}, exhaustedMs, "aside");
  const [news, setNews] = useState("");
  useEffect(() => void (document.title = `${route.key ?? VIEWS[route.place].title} · holdfast`), [route]);
  useEffect(() => {
    setNews("");
    scrollTo(0, 0);
  }, [route.place, route.key]);
  const { place, key: name, query } = route;
  const View = VIEWS[place][name === undefined ? "list" : "one"];
  const shown = { lines, polledLines: polled, logFromMs: polled.data?.fromMs ?? about.data?.logFromMs, exhausted, announce: setNews };
  return html`<a class="skip visually-hidden" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="brand" href=${hrefOf("locks")}><img src="/console/icon.svg" alt="" width="26" height="26" />holdfast</a>
      <nav aria-label="Views">
        ${PLACES.map((each) => html`<a href=${hrefOf(each)} aria-current=${each === place ? "page" : undefined}>${VIEWS[each].title}${each === "runs" && badge(exhausted)}</a>`)}
      </nav>
      <${Status} about=${about} ...${props} />
    </header>
    ${
      news !== "" &&
      html`<div class="notice held" role="status">
        <p>${news}</p>
        <button type="button" onClick=${() => setNews("")}>Close</button>
      </div>`
    }
    ${
      about.data
        ? html`<${View} key=${name} name=${name} about=${about.data} query=${query} ...${shown} />`
        : html`<main id="main"><${Freshness} polled=${about} /></main>`
    }`;
}

function badge(exhausted: Exhausted | undefined): Content | false {
  const count = exhausted?.items.length ?? 0;
  return (
    count > 0 &&
    html` <span class="badge event over"
      >${count}${exhausted?.more === true ? "+" : ""}<span> ${count === 1 ? "needs" : "need"} you</span></span
    >`
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** Polls the log, and keeps its last lines. */
function useLines(isOn: boolean): { readonly lines: readonly Line[]; readonly polled: Polled<Lines> } {
  const next = useRef(0);
  const [lines, setLines] = useState<readonly Line[]>([]);
  const ask = async (reader: AbortSignal): Promise<Lines> => {
    let answer = await read<Lines>("lines", { from: next.current }, reader);
    const added = [...answer.lines];
    // A full answer has more behind it.
    for (let from = next.current; answer.lines.length > 0 && answer.next - from >= PAGE;) {
      from = answer.next;
      answer = await read<Lines>("lines", { from }, reader);
      added.push(...answer.lines);
    }
    // A service that was started anew counts from 0.
    if (answer.next < next.current) setLines([]);
    next.current = answer.next;
    if (added.length > 0) setLines((before) => [...before, ...added].slice(-LINES_MAX));
    return answer;
  };
  const polled = usePoll(isOn ? ask : undefined, LINES_MS, "lines", "service");
  return { lines, polled };
}

/** The number of lines in a full answer. */
const PAGE = 2000;

/** Reads the state of the service, and learns its time. */
async function readAbout(reader: AbortSignal): Promise<About> {
  const sentAtMs = Date.now();
  const about = await read<About>("about", {}, reader);
  learnOffset(about.serverTimeMs, sentAtMs, Date.now());
  return about;
}

function Status({ about, isPaused, isUtc, togglePause, toggleUtc, help }: PageProps & { readonly about: Polled<About> }): Content {
  const { polls } = useContext(SharedContext);
  const nowMs = useNow(1000);
  const ofPart = (part: PollPart): Polled<unknown>[] => [...polls].flatMap(([{ current }, one]) => (one === part ? [current] : []));
  const [views, services] = [ofPart("view"), ofPart("service")];
  // The log is a view of its own.
  const { tone, state, age } = isPaused ? PAUSED : views.length > 0 ? statusOf(views, services, nowMs) : statusOf(services, [], nowMs);
  const skew = skewText(skewMs());
  return html`<div class="status">
    <span class="light ${tone}">${mark(tone)}<span role="status">${state}</span> <small>${age}</small></span>
    ${skew !== "" && html`<small class="late">${skew}</small>`}
    ${about.data && html`<span class="where"><bdi>${about.data.where}</bdi> <small>${about.data.door && html`answered by <bdi>${about.data.door}</bdi> · `}${about.data.version}${about.data.canChange ? "" : " · read-only"}</small></span>`}
    <button type="button" onClick=${togglePause} aria-pressed=${isPaused}>${isPaused ? "Resume" : "Pause"}</button>
    <button type="button" onClick=${toggleUtc} title=${isUtc ? "Show local times" : "Show times in UTC"}>
      Times: ${isUtc ? "UTC" : "local"}
    </button>
    <button type="button" onClick=${help} aria-label="Keyboard shortcuts">?</button>
  </div>`;
}

function Help(props: { readonly hasKeys: boolean; readonly toggleKeys: () => void; readonly onClose: () => void }): Content {
  const { hasKeys, toggleKeys, onClose } = props;
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose}>
    <table class="help"><tbody>${KEYS.map(
      ([keys, meaning]) =>
        html`<tr>
          <th scope="row"><kbd>${keys}</kbd></th>
          <td>${meaning}</td>
        </tr>`,
    )}</tbody></table>
    <label class="check"><input type="checkbox" checked=${hasKeys} onChange=${toggleKeys} /> Use these shortcuts</label>
    <div class="buttons"><button type="button" onClick=${onClose}>Close</button></div>
  </${Dialog}>`;
}
