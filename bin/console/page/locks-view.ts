/** The keys that are held now. */
import { useRef, useState } from "preact/hooks";
import { formatDuration } from "../../duration.js";
import type { About, KeyView, Listed } from "../data.js";
import { Choice, HolderFilters } from "./filters.js";
import type { Polled } from "./hooks.js";
import { useAge, usePolled } from "./hooks.js";
import type { Content } from "./html.js";
import { html } from "./html.js";
import { empty, Freshness, keyName, LeaseBar, mark, ownerName, partOfTable, tryIt } from "./parts.js";
import { hrefOf, replaceRoute } from "./route.js";
import { keyTone, kindOf, longestWaitMs, shortToken, WORDS } from "./words.js";

/** The number of rows at first, and the largest number. */
const ROWS = { first: 100, most: 500 };

type Order = "key" | "wait" | "left" | "held";

const ORDERS: readonly (readonly [Order, string])[] = [
  ["key", "Key"],
  ["wait", "Longest wait"],
  ["left", "Least time left"],
  ["held", "Held longest"],
];

const VALUES: Readonly<Record<Exclude<Order, "key">, (view: KeyView) => number>> = {
  wait: (view) => -longestWaitMs(view),
  left: ({ holders }) => Math.min(...holders.map(({ remainingMs }) => remainingMs)),
  held: ({ holders }) => -Math.max(...holders.map(({ heldMs }) => heldMs)),
};

/** The view. */
export function LocksView({ about, query }: { readonly about: About; readonly query: URLSearchParams }): Content {
  const filters = {
    prefix: query.get("prefix") ?? "",
    owner: query.get("owner") ?? "",
    order: query.get("order") ?? "",
    only: query.get("only") ?? "",
  };
  // Another filter begins at the first key again.
  const from = query.get("from") ?? "";
  const set = (changed: Partial<typeof filters> & { readonly from?: string }): void =>
    replaceRoute(hrefOf("locks", undefined, { ...filters, ...changed }));
  const [max, setMax] = useState(ROWS.first);
  const polled = usePolled<Listed<KeyView>>("locks", { prefix: filters.prefix, owner: filters.owner, max, from }, about.pollMs);
  const order = ORDERS.find(([name]) => name === filters.order)?.[0] ?? "key";
  const all = polled.data?.items ?? [];
  const shown = filters.only === "waited" ? all.filter(({ waiters }) => waiters.length > 0) : all;
  const { more = false, unreadFrom } = polled.data ?? {};
  const isWhole = from === "" && unreadFrom === undefined;
  return html`<main id="main" tabindex="-1">
    <h1 class="visually-hidden">Locks</h1>
    <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
      ${HolderFilters({ prefix: filters.prefix, owner: filters.owner, set })}
      ${Choice({ label: "Order", value: order, choices: ORDERS, onChange: (name) => set({ order: name === "key" ? "" : name }) })}
      <label class="check">
        <input type="checkbox" checked=${filters.only === "waited"} onChange=${() => set({ only: filters.only === "" ? "waited" : "" })} />
        Only keys with waiters
      </label>
      <p class="count" role="status">${polled.data && countText(shown.length, more)}</p>
    </form>
    <${Freshness} polled=${polled} what="keys" />
    ${polled.data && (shown.length > 0 ? html`<${Table} items=${shown} polled=${polled} order=${order} />` : nothing())}
    ${!polled.data && !polled.error && html`<p class="loading">Reading the locks…</p>`} ${more && unreadFrom === undefined && moreButton()}
    ${!isWhole && partOfTable(from, unreadFrom, (key) => set({ from: key }))}
  </main>`;

  function nothing(): Content {
    if (!isWhole) return empty("No key that was looked at is held and fits the filter");
    if (filters.prefix === "" && filters.owner === "" && filters.only === "")
      return empty("No key is held", "As soon as a caller acquires a lock, its key appears here.", tryIt(about, "lock demo -- sleep 30"));
    const clear = html`<button type="button" onClick=${() => set({ prefix: "", owner: "", only: "" })}>Clear the filter</button>`;
    return empty("No held key fits the filter", clear);
  }

  function moreButton(): Content {
    if (max >= ROWS.most) return html`<p class="more muted">There are more than these ${ROWS.most}. Give a longer prefix.</p>`;
    return html`<p class="more">
      <button type="button" onClick=${() => setMax(Math.min(ROWS.most, max + ROWS.first))}>Show more keys</button>
    </p>`;
  }
}

function countText(count: number, more: boolean): string {
  return `${count}${more ? " or more" : ""} held ${count === 1 && !more ? "key" : "keys"}`;
}

function Table(given: { readonly items: readonly KeyView[]; readonly polled: Polled<unknown>; readonly order: Order }): Content {
  const { items, polled, order } = given;
  const { agoMs, isKnown } = useAge(polled);
  const isUnderPointer = useRef(false);
  const before = useRef<{ readonly order: Order; readonly keys: readonly string[] }>({ order, keys: [] });
  const sorted = sortedBy(items, order, isUnderPointer.current && before.current.order === order ? before.current.keys : []);
  before.current = { order, keys: sorted.map(({ key }) => key) };
  return html`<table
    class="rows locks ${isKnown && !polled.error ? "" : "old"} ${items.length > ROWS.first ? "many" : ""}"
    onPointerEnter=${() => (isUnderPointer.current = true)}
    onPointerLeave=${() => (isUnderPointer.current = false)}
  >
    <thead>
      <tr>
        <th scope="col">Key</th>
        <th scope="col">Owner</th>
        <th scope="col">Mode</th>
        <th scope="col" class="number">Token</th>
        <th scope="col" class="number">Held for</th>
        <th scope="col">Lease left</th>
        <th scope="col" class="number">Waiting</th>
        <th scope="col" class="number">Longest wait</th>
      </tr>
    </thead>
    <tbody>
      ${sorted.map((view) => row(view, agoMs))}
    </tbody>
  </table>`;
}

/** Sorts by `order`. The keys of `frozen` keep their places, so that no row moves away under the pointer. */
function sortedBy(items: readonly KeyView[], order: Order, frozen: readonly string[]): readonly KeyView[] {
  const valueOf = order === "key" ? () => 0 : VALUES[order];
  const values = new Map(items.map((view) => [view.key, valueOf(view)]));
  const places = new Map(frozen.map((key, at) => [key, at]));
  const placeOf = ({ key }: KeyView): number => places.get(key) ?? frozen.length;
  return items.toSorted((a, b) => placeOf(a) - placeOf(b) || (values.get(a.key) ?? 0) - (values.get(b.key) ?? 0));
}

function row(view: KeyView, agoMs: number): Content {
  const { key, parts, holders, waiters, fencingToken } = view;
  const tone = keyTone(view, agoMs);
  const [first, ...others] = holders;
  const shortest = holders.toSorted((a, b) => a.remainingMs - b.remainingMs)[0];
  const waitMs = longestWaitMs(view);
  return html`<tr key=${key} class=${tone}>
    <th scope="row">
      <a class="row-link" href=${hrefOf("locks", key)}
        >${mark(tone)}<span class="visually-hidden">${WORDS[tone]}: </span>${keyName(key, parts)}</a
      >
    </th>
    <td data-label="Owner">${ownerName(first?.owner)}${others.length > 0 && html` <span class="muted">+${others.length}</span>`}</td>
    <td data-label="Mode" class=${view.mode === "exclusive" && view.limit === undefined ? "usual" : ""}>${kindOf(view)}</td>
    <td data-label="Token" class="number token" title=${String(fencingToken)}>${shortToken(fencingToken)}</td>
    <td data-label="Held for" class="number">${first && formatDuration(first.heldMs + agoMs)}</td>
    <td data-label="Lease left">${shortest && LeaseBar({ leftMs: shortest.remainingMs - agoMs, leaseMs: shortest.leaseMs, tone })}</td>
    <td data-label="Waiting" class="number ${waiters.length > 0 ? "some" : "muted none"}">${waiters.length}</td>
    <td data-label="Longest wait" class="number ${waiters.length > 0 ? "some" : "muted none"}">
      ${waiters.length > 0 ? formatDuration(waitMs + agoMs) : "–"}
    </td>
  </tr>`;
}
