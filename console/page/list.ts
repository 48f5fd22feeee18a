/** A list: its filters as the address has them, its poll, and the number of its rows. */
import { useEffect, useState } from "preact/hooks";
import type { About, ListData } from "../data.js";
import { useIsOld, usePolled } from "./hooks.js";
import { type Content, html } from "./html.js";
import { empty } from "./parts.js";
import { type Place, filtersOf } from "./route.js";

/** The number of rows at first and with each further click, and the largest number. */
export const ROWS = { first: 100, most: 500 };

interface Filters {
  /** A part of a key or an owner. */
  readonly find: string;
  /** `1` to read all of a service that charges for it. */
  readonly all: string;
}

/** Returns the list of a place. */
export function useList<T extends ListData<unknown>, F extends Filters & Readonly<Record<string, string>>>(
  place: Place,
  about: About,
  query: URLSearchParams,
  initial: F,
) {
  const [max, setMax] = useState(ROWS.first);
  const { filters, set } = filtersOf({ place, query }, initial);
  const [isOn, setOn] = useState(false);
  const polled = usePolled<T>(place, { ...filters, max, on: isOn ? 1 : "" }, about.pollMs);
  /** The class of what shows the answer. */
  const age = useIsOld(polled) ? "old" : "";
  const { data } = polled;
  const readsOn = data?.readsOn === true;
  useEffect(() => {
    if (readsOn) setOn(true);
  }, [readsOn]);
  /** Says that what was `done` is of the first rows alone, if it is, and offers to read all, unless that was asked for already. */
  const partOf = (done: string, what: string): Content | false =>
    data?.more === true &&
    html`<p class="notice part">
      <span>${done} among the first ${data.read} ${what} of more.${readsOn && " Reading on…"}</span>
      ${filters.all === "" && !readsOn && html`<button type="button" onClick=${() => set({ all: "1" } as Partial<F>)}>Read all</button>`}
    </p>`;
  /** Offers more rows, if there are more. */
  const more = (what: string): Content | false => {
    if (!data || data.fits <= data.items.length) return false;
    if (max >= ROWS.most) return html`<p class="more muted">The first ${ROWS.most} of ${data.fits} are shown. Search for the others.</p>`;
    return html`<p class="more"><button type="button" onClick=${() => setMax(max + ROWS.first)}>Show more ${what}</button></p>`;
  };
  /** Returns what stands in place of rows: after an old answer, that they are not known. */
  const none = (otherwise: () => Content): Content => (age === "" ? otherwise() : empty("Not known", "The last answer had no row."));
  return { filters, set, polled, age, partOf, none, more };
}
