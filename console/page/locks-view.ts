/** The first view: is anything wrong, in figures and sentences, and which keys are held now. */
import { useRef } from "preact/hooks";
import { formatSeconds } from "../text/duration.js";
import { DEFAULT_ATTEMPTS, nextOf, stateOf } from "../text/run-text.js";
import { plain } from "../text/plain-text.js";
import { lossesBefore, lossesOf } from "../activity.js";
import type { About, KeyView, LocksData, RunOfKey } from "../data.js";
import { type Figure, type Order, atLeast, figuresOf, longestWaitMs, LOOKS_MAX, ORDERS, shortestHold } from "../overview.js";
import { Choice, Search } from "./filters.js";
import { type Since, type ViewProps, useIsKnown, useSince } from "./hooks.js";
import type { Polled } from "./poll.js";
import { type Children, type Content, html } from "./html.js";
import { ROWS, useList } from "./list.js";
import { empty, Freshness, head, keyName, LeaseBar, mark, ownerName, tryIt } from "./parts.js";
import { hrefOf } from "./route.js";
import { keyTone, kindOf, messageOf, sentence, stateText, WORDS } from "./words.js";

const ORDER_NAMES: Readonly<Record<Order, string>> = { wait: "Longest wait", left: "Least time left", held: "Held longest", key: "Key" };

/** The filters at first. `only`: `waited` for the keys with waiters alone. */
const FILTERS = { find: "", only: "", order: "wait", all: "" };

type Filters = Pick<ReturnType<typeof useList<LocksData, typeof FILTERS>>, "filters" | "set">;

export function LocksView(props: ViewProps): Content {
  const { about, query } = props;
  const list = useList<LocksData, typeof FILTERS>("locks", about, query, FILTERS);
  const { filters, set, polled } = list;
  const { data, atMs = 0, error } = polled;
  const sinceOf = useSince(data, atMs);
  return html`<main id="main" tabindex="-1">
    <h1 class="visually-hidden">Locks</h1>
    ${data && html`<${Figures} ...${props} data=${data} atMs=${atMs} age=${list.age} />`}
    <${Search} label="Find a key or an owner" value=${filters.find} onChange=${(find: string) => set({ find })} place="locks" />
    <${Freshness} polled=${polled} />
    ${list.partOf("Counted and sorted", "held keys")}
    ${data && filters.find === "" && html`<${NeedsALook} ...${props} data=${data} polled=${polled} sinceOf=${sinceOf} />`}
    ${!data && !error && html`<p class="loading">Reading the locks…</p>`}
    ${
      data &&
      html`<section class="panel" aria-label="Held keys">
        <header class="filters">
          <h2>${filters.find === "" ? "All held keys" : "Held keys that fit"}</h2>
          <p class="count" role="status">${countText(data)}</p>
          ${listFilters(list)}
        </header>
        ${
          data.items.length > 0
            ? html`<${Table} items=${data.items} order=${filters.order} sinceOf=${sinceOf} age=${list.age} />`
            : list.none(() => nothing(about, data, list))
        }
        ${list.more("keys")}
      </section>`
    }
  </main>`;
}

/** The figures. The last one comes from the log, and where there is none, from the runs. */
function Figures(props: ViewProps & { readonly data: LocksData; readonly atMs: number; readonly age: string }): Content {
  const { data, atMs, age, exhausted, lines, logFromMs } = props;
  const losses = lossesBefore(atMs, lossesOf(lines, data.figures.ranOut, atMs));
  const refused = exhausted?.items.length ?? 0;
  const last: Figure =
    logFromMs === undefined
      ? {
          count: atLeast(refused, exhausted?.more === true),
          text: `${refused === 1 ? "run" : "runs"} out of attempts`,
          tone: refused > 0 ? "over" : "",
        }
      : {
          count: String(losses),
          text: `${losses === 1 ? "lease" : "leases"} lost in the last 10 min`,
          tone: losses > 0 ? "over" : "",
        };
  return html`<ul class="figures ${age}" aria-label="Figures">
    ${[...figuresOf(data), last].map(({ count, text, tone }) => html`<li><strong class=${tone}>${count}</strong> ${text}</li>`)}
  </ul>`;
}

/** The keys and runs that need a person; nothing if there are none, or if the answer is old: then who may be dead is not known. */
function NeedsALook(
  props: ViewProps & { readonly data: LocksData; readonly polled: Polled<LocksData>; readonly sinceOf: Since },
): Content | null {
  const { data, polled, exhausted, sinceOf } = props;
  const isKnown = useIsKnown(polled);
  const runs = exhausted ? [...exhausted.items, ...exhausted.interrupted] : [];
  const others = data.looksInAll - data.looks.length + Math.max(0, runs.length - LOOKS_MAX);
  if (!isKnown || data.looks.length + runs.length === 0) return null;
  const read = [...(data.more ? [`${data.read} held keys`] : []), ...(exhausted?.isPart ? ["runs"] : [])];
  return html`<section class="panel looks" aria-label="Needs a look">
    <header>
      <h2>Needs a look</h2>
      ${read.length > 0 && html`<span class="muted">among the ${read.join(" and the ")} that were read</span>`}
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
  const { key, parts, state, error } = run;
  const name = keyName(key, parts);
  if (state === "interrupted") return attentionRow(hrefOf("runs", key), "late", name, "The run was interrupted.", sentence(nextOf(run)));
  const text = html`The run has <strong class="lost">${stateOf(run)}</strong>. The limit is the caller's, ${DEFAULT_ATTEMPTS} by default.`;
  const why = error === undefined ? "" : html`<bdi>${plain(messageOf(error))}</bdi>`;
  return attentionRow(hrefOf("runs", key), "over", name, text, why);
}

function listFilters({ filters: { order, only }, set }: Filters): Content {
  const choices = ORDERS.map((name) => [name, ORDER_NAMES[name]] as const);
  return html`${Choice({ label: "Order", value: order, choices, onChange: (name) => set({ order: name }) })}
    <label class="check">
      <input type="checkbox" checked=${only !== ""} onChange=${() => set({ only: only === "" ? "waited" : "" })} />
      Only keys with waiters
    </label>`;
}

function nothing(about: About, { read, more }: LocksData, { filters: { find, only }, set }: Filters): Content {
  const isAll = find === "" && only === "";
  if (isAll && more) return empty("None of the keys that were read is held");
  if (isAll) return empty("No key is held", tryIt(about, "lock demo -- sleep 30"));
  const clear = html`<button type="button" onClick=${() => set({ find: "", only: "" })}>Clear the filter</button>`;
  const fault = find === "" ? "is waited for" : "fits";
  return empty(more ? `None of the first ${read} held keys ${fault}` : `No held key ${fault}`, clear);
}

function countText({ fits, read, more }: LocksData): string {
  const of = fits === read || more ? "" : ` of ${read}`;
  return `${fits}${of} held ${fits === 1 && of === "" ? "key" : "keys"}${more ? " among those read" : ""}`;
}

function Table(props: {
  readonly items: readonly KeyView[];
  readonly order: string;
  readonly sinceOf: Since;
  readonly age: string;
}): Content {
  const { items, order, sinceOf, age } = props;
  const isUnderPointer = useRef(false);
  const before = useRef<{ readonly order: string; readonly keys: readonly string[] }>({ order, keys: [] });
  const shown = isUnderPointer.current && before.current.order === order ? frozen(items, before.current.keys) : items;
  before.current = { order, keys: shown.map(({ key }) => key) };
  return html`<table
    class="rows locks ${age} ${items.length > ROWS.first ? "many" : ""}"
    onPointerEnter=${() => (isUnderPointer.current = true)}
    onPointerLeave=${() => (isUnderPointer.current = false)}
  >
    ${head("Key", "Owner", "Held since", "Last renewed", "Lease left", ["Waiting", "number"])}
    <tbody>
      ${shown.map((view) => row(view, sinceOf))}
    </tbody>
  </table>`;
}

/** Returns `items` with those of `keys` in their old places, so that no row moves away under the pointer. */
function frozen(items: readonly KeyView[], keys: readonly string[]): readonly KeyView[] {
  const places = new Map(keys.map((key, at) => [key, at]));
  const placeOf = ({ key }: KeyView): number => places.get(key) ?? keys.length;
  return items.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** Everything in a row is as the service told it: what an older answer would mean by now is not known. */
function row(view: KeyView, sinceOf: Since): Content {
  const { key, parts, holders, waiters, limit, mode } = view;
  const tone = keyTone(view);
  const [first, ...others] = holders;
  const shortest = shortestHold(view);
  const { leaseMs = 0, remainingMs = 0 } = shortest ?? {};
  const isUsual = limit === undefined && mode === "exclusive";
  return html`<tr key=${key} class=${tone}>
    <th scope="row">
      <a class="row-link" href=${hrefOf("locks", key)}
        >${mark(tone)}<span class="visually-hidden">${WORDS[tone]}: </span>${keyName(key, parts)}</a
      >
    </th>
    <td data-label="Owner" class="wide">
      ${ownerName(first?.owner)}${others.length > 0 && html` <span class="muted">+${others.length}</span>`}${!isUsual && html` <span class="tag">${kindOf(view)}</span>`}
    </td>
    <td data-label="Held since" class="nowrap">
      ${first && html`${sinceOf(key, first)} <span class="muted">(${formatSeconds(first.heldMs)})</span>`}
    </td>
    <td data-label="Last renewed" class=${tone === "late" || tone === "over" ? "some" : ""}>${formatSeconds(leaseMs - remainingMs)} ago</td>
    <td class="wide">${shortest && LeaseBar({ leftMs: remainingMs, leaseMs, tone })}</td>
    <td data-label="Waiting" class="number ${waiters.length > 0 ? "some" : "muted none"}">
      ${waiters.length > 0 ? `${waiters.length}, for ${formatSeconds(longestWaitMs(view))}` : "–"}
    </td>
  </tr>`;
}
