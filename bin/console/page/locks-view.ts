/** The first view: is anything wrong, and which keys are held now. */
import { useRef } from "preact/hooks";
import { formatSeconds } from "../../duration.js";
import type { About, KeyView, LocksData } from "../data.js";
import { type Order, longestWaitMs, ORDERS, shortestHold } from "../overview.js";
import { Choice, Search } from "./filters.js";
import { Figures, NeedsALook } from "./first-look.js";
import { type Since, type ViewProps, useSince } from "./hooks.js";
import { type Content, html } from "./html.js";
import { type List, ROWS, useList } from "./list.js";
import { empty, Freshness, head, keyName, LeaseBar, mark, ownerName, tryIt } from "./parts.js";
import { hrefOf } from "./route.js";
import { keyTone, kindOf, WORDS } from "./words.js";

const ORDER_NAMES: Readonly<Record<Order, string>> = {
  wait: "Longest wait",
  left: "Least time left",
  held: "Held longest",
  key: "Key",
};

/** The filters at first. `only`: `waited` for the keys with waiters alone. */
const FILTERS = { find: "", only: "", order: "wait", all: "" };

type Filters = Pick<List<LocksData, typeof FILTERS>, "filters" | "set">;

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
    <td data-label="Owner">
      ${ownerName(first?.owner)}${others.length > 0 && html` <span class="muted">+${others.length}</span>`}${!isUsual && html` <span class="tag">${kindOf(view)}</span>`}
    </td>
    <td data-label="Held since" class="nowrap">
      ${first && html`${sinceOf(key, first)} <span class="muted">(${formatSeconds(first.heldMs)})</span>`}
    </td>
    <td data-label="Last renewed" class=${tone === "late" || tone === "over" ? "some" : ""}>${formatSeconds(leaseMs - remainingMs)} ago</td>
    <td data-label="Lease left">${shortest && LeaseBar({ leftMs: remainingMs, leaseMs, tone })}</td>
    <td data-label="Waiting" class="number ${waiters.length > 0 ? "some" : "muted none"}">
      ${waiters.length > 0 ? `${waiters.length}, for ${formatSeconds(longestWaitMs(view))}` : "–"}
    </td>
  </tr>`;
}
