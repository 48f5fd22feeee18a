/** The keyboard: a letter goes somewhere or does something, unless somebody types, a dialog is open, or the keys are off. */
import { useEffect, useRef } from "preact/hooks";
import { hrefOf } from "./route.js";

/** The shortcuts with their meanings, for the help. */
export const KEYS: readonly (readonly [keys: string, meaning: string])[] = [
  ["/", "search"],
  ["↑ ↓ or k j", "previous or next row"],
  ["Enter", "open the row"],
  ["Esc", "back to the list, as it was"],
  ["g then l, r, m or a", "locks, runs, limits or activity"],
  ["b", "break the hold or reset the run"],
  ["t", "times in UTC or local"],
  ["p", "pause or resume"],
  ["?", "this help"],
];

/** The actions that the page itself carries out. */
export interface KeyActions {
  readonly toggleUtc: () => void;
  readonly togglePause: () => void;
  readonly help: () => void;
}

/** The time between `g` and the next letter, in ms. */
const SECOND_KEY_MS = 1500;

/** Listens while `isOn`. */
export function useKeys(isOn: boolean, actions: KeyActions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    if (!isOn) return undefined;
    let pressedGMs = 0;
    const press = (event: KeyboardEvent): void => {
      const target = event.target as Element;
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (target.matches("input, select, textarea")) {
        if (event.key === "Escape") (target as HTMLElement).blur();
        return;
      }
      const isSecond = Date.now() - pressedGMs < SECOND_KEY_MS;
      pressedGMs = event.key === "g" ? Date.now() : 0;
      if (isSecond && goTo(event.key)) return event.preventDefault();
      if (act(event.key, latest.current)) event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [isOn]);
}

function goTo(letter: string): boolean {
  const place = ({ l: "locks", r: "runs", m: "limits", a: "activity" } as const)[letter];
  if (place === undefined) return false;
  location.hash = hrefOf(place);
  return true;
}

function act(name: string, { toggleUtc, togglePause, help }: KeyActions): boolean {
  const actions: Readonly<Record<string, () => boolean>> = {
    "/": () => focus(document.querySelector<HTMLElement>("[data-first=true]")),
    j: () => moveRow(1),
    ArrowDown: () => moveRow(1),
    k: () => moveRow(-1),
    ArrowUp: () => moveRow(-1),
    Escape: () => click("[data-back]"),
    b: () => click("[data-change]"),
    t: () => (toggleUtc(), true),
    p: () => (togglePause(), true),
    "?": () => (help(), true),
  };
  return Object.hasOwn(actions, name) && actions[name]?.() === true;
}

function moveRow(by: number): boolean {
  const rows = Array.from(document.querySelectorAll<HTMLElement>(".row-link"));
  const at = rows.indexOf(document.activeElement as HTMLElement);
  return focus(rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))]);
}

function focus(element: HTMLElement | null | undefined): boolean {
  element?.focus();
  return element !== null && element !== undefined;
}

function click(selector: string): boolean {
  const element = document.querySelector<HTMLElement>(selector);
  // The focus comes back to it when a dialog closes.
  element?.focus();
  element?.click();
  return element !== null;
}
