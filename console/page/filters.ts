/** The filters of a list. They are kept in the address, and applied a moment after the last key. */
import { useEffect, useRef, useState } from "preact/hooks";
import { deedOf } from "../activity.js";
import type { Line } from "../data.js";
import { canBeKey } from "../overview.js";
import { type Children, type Content, html } from "./html.js";
import { type Place, hrefOf } from "./route.js";

/** The time after the last key until a filter is applied, in ms. */
const SETTLE_MS = 250;
const AS_TYPED = { autocomplete: "off", autocapitalize: "off", spellcheck: "false" };

export function TextFilter(props: {
  readonly label: string;
  readonly value: string;
  readonly placeholder: string;
  /** True for the first filter of the page, which the key `/` focuses. */
  readonly isFirst?: boolean;
  readonly onChange: (value: string) => void;
}): Content {
  const { label, value, placeholder, isFirst = false, onChange } = props;
  const [text, setText] = useState(value);
  const applied = useRef(value);
  useEffect(() => {
    // A text that this field applied itself comes back here, when more may have been typed.
    if (value !== applied.current) setText(value);
    applied.current = value;
  }, [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => {
      applied.current = text;
      onChange(text);
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const onInput = (event: { readonly currentTarget: HTMLInputElement }): void => setText(event.currentTarget.value);
  return html`<label class="field">
    <span>${label}</span>
    <input type="search" ...${{ ...AS_TYPED, value: text, placeholder, onInput }} data-first=${isFirst} />
  </label>`;
}

/** The search of a list: one box for a part of a key or an owner, and the way to a key that no list has. */
export function Search(props: {
  readonly label: string;
  readonly value: string;
  /** The place of the keys. */
  readonly place: Place;
  readonly onChange: (value: string) => void;
  readonly children?: Children;
}): Content {
  const { label, value, place, onChange } = props;
  const key = value.trim();
  return html`<form class="filters search" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
    <${TextFilter}
      ...${{ label, value, onChange }}
      placeholder=${place === "limits" ? "partner" : "1231, ORDER_1231, checkout-7"}
      isFirst
    />
    ${canBeKey(key) && html`<a class="button" href=${hrefOf(place, key)}>Open ‘${key}’</a>`} ${props.children}
  </form>`;
}

export function Choice<T extends string>(props: {
  readonly label: string;
  readonly value: T;
  readonly choices: readonly (readonly [value: T, text: string])[];
  readonly onChange: (value: T) => void;
}): Content {
  const { label, value, choices, onChange } = props;
  const choose = (event: { readonly currentTarget: HTMLSelectElement }): void => onChange(event.currentTarget.value as T);
  return html`<label class="field">
    <span>${label}</span>
    <select value=${value} onChange=${choose}>
      ${choices.map(([name, text]) => html`<option value=${name} selected=${name === value}>${text}</option>`)}
    </select>
  </label>`;
}

/** The kinds of events, as the address names them. */
const KINDS: readonly (readonly [string, string])[] = [
  ["", "All"],
  ["granted", "Grants"],
  ["refused", "Refusals"],
  ["ended", "Ends"],
  ["queued", "Queue"],
  ["deeds", "Breaks and resets"],
];

/** Chooses a kind of events. */
export function EventChoice(props: { readonly value: string; readonly onChange: (value: string) => void }): Content {
  return Choice({ label: "Event", choices: KINDS, ...props });
}

/** True if a line is of this kind and owner; `""` is all. */
export function isOf(line: Line, { event, owner }: { readonly event: string; readonly owner: string }): boolean {
  const isOfKind = event === "deeds" ? deedOf(line) !== undefined : line.event === event;
  return (owner === "" || line.owner === owner) && (event === "" || isOfKind);
}
