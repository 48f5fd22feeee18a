/** Small parts that several views use: a state's mark, a lease as a bar, a key's name, notices. */
import { useContext, useState } from "preact/hooks";
import { formatSeconds } from "../text/duration.js";
import { plain } from "../text/plain-text.js";
import type { About } from "../data.js";
import { ApiError, RIGHT, wordsOf } from "./api.js";
import { SharedContext, useNow } from "./hooks.js";
import type { Polled } from "./poll.js";
import { type Children, type Content, html } from "./html.js";
import { isSilent } from "./status.js";
import { type Tone, whenText, WORDS } from "./words.js";

/** The shape of each state, so that colour isn't needed to tell them apart. */
const SHAPES: Readonly<Record<Tone, string>> = {
  held: "M2 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
  late: "M6 1.5 11 10.5H1Z",
  over: "M2 3.4 3.4 2 6 4.6 8.6 2 10 3.4 7.4 6 10 8.6 8.6 10 6 7.4 3.4 10 2 8.6 4.6 6Z",
  broken: "M7 1 2.5 6.8H5.6L4.8 11 9.5 5.2H6.3Z",
  free: "M6 2a4 4 0 1 0 0 8a4 4 0 1 0 0-8M6 3.6a2.4 2.4 0 1 1 0 4.8a2.4 2.4 0 1 1 0-4.8",
  waiting: "M2 2H10L6 6 10 10H2L6 6Z",
  done: "M4.6 10 1 6.4 2.4 5 4.6 7.2 9.6 2 11 3.4Z",
  unknown: "M1 5H11V7H1Z",
};

/** Returns the mark of a state, in the shape of another if it needs one of its own. */
export function mark(tone: Tone, shape = tone): Content {
  return html`<svg class="mark ${tone}" viewBox="0 0 12 12" aria-hidden="true"><path fill-rule="evenodd" d=${SHAPES[shape]} /></svg>`;
}

/** Returns a state as a mark with its word. */
export function chip(tone: Tone, word: string = WORDS[tone]): Content {
  return html`<span class="chip ${tone}">${mark(tone)}${word}</span>`;
}

/** Returns a key, with the parts that it was made from. Text of others keeps its direction to itself. */
export function keyName(key: string, parts?: string): Content {
  return html`<span class="key"
    ><bdi>${key}</bdi>${parts !== undefined && html`<small class="parts"><bdi>${plain(parts)}</bdi></small>`}</span
  >`;
}

/** Returns an owner. */
export function ownerName(owner: string | undefined): Content {
  return owner ? html`<bdi class="owner">${plain(owner)}</bdi>` : html`<span class="muted">no name</span>`;
}

/** Returns a part of a whole as a bar. */
export function bar(part: number, tone: Tone): Content {
  return html`<span class="bar" aria-hidden="true"
    ><span class="fill ${tone}" style=${{ transform: `scaleX(${part.toFixed(4)})` }}
  /></span>`;
}

/** A lease as a bar that runs down, with the time left. */
export function LeaseBar(props: { readonly leftMs: number; readonly leaseMs: number | undefined; readonly tone: Tone }): Content {
  const { leftMs, leaseMs, tone } = props;
  const left = Math.max(0, leftMs);
  const part = leaseMs === undefined ? undefined : Math.min(1, left / leaseMs);
  return html`<span class="lease">
    ${part !== undefined && bar(part, tone)}
    <span class="left">${tone === "over" ? "over" : formatSeconds(left)}</span>
  </span>`;
}

/** The age of the shown data, and the failure that made it old, if one did. */
export function Freshness({ polled }: { readonly polled: Polled<unknown> }): Content | null {
  const { isUtc } = useContext(SharedContext);
  const nowMs = useNow(1000);
  const { error, atMs, again } = polled;
  if (!error && !isSilent(polled, nowMs)) return null;
  const age = atMs === undefined ? "" : ` What is shown is of ${whenText(atMs, nowMs, isUtc)}, ${formatSeconds(nowMs - atMs)} ago.`;
  return html`<div class="notice over" role="alert">
    <strong>${error ? titleOf(error) : "No answer"}</strong>
    <p>${error ? wordsOf(error) : "The request is still under way."}${age}</p>
    <button type="button" onClick=${again}>Try again now</button>
  </div>`;
}

function titleOf(error: Error): string {
  const code = error instanceof ApiError ? error.code : "";
  const titles: Readonly<Record<string, string>> = {
    unreachable: "The console lost its server",
    "no-answer": "This is no answer of holdfast",
    unavailable: "The service or its table does not answer",
    throttled: "Too many requests",
    forbidden: `You may not read this: ${RIGHT}`,
    "not-configured": "The service does not accept these credentials, or is not set up",
    console: "The console refused this",
  };
  return titles[code] ?? "This could not be read";
}

/** Returns a notice in place of rows. */
export function empty(title: string, ...more: readonly Children[]): Content {
  return html`<div class="empty"><strong>${title}</strong>${more.map((part) => html`<p>${part}</p>`)}</div>`;
}

/** Returns the head of a table. A title may have a class. */
export function head(...titles: readonly (string | readonly [title: string, className: string])[]): Content {
  return html`<thead>
    <tr>
      ${titles.map((one) => {
        const [title, className] = typeof one === "string" ? [one] : one;
        return html`<th scope="col" class=${className}>${title}</th>`;
      })}
    </tr>
  </thead>`;
}

/** A button that opens the dialog of a change. While what is shown is old it does nothing, but keeps the focus, which a disabled one would lose. */
export function changeButton(word: string, isKnown: boolean, open: () => void, attributes: object): Content {
  return html`<button type="button" class="danger quiet" aria-disabled=${!isKnown} onClick=${isKnown ? open : undefined} ...${attributes}>
    ${word}
  </button>`;
}

/** Returns a term of a list with what it is. */
export function fact(term: string, value: Children, className?: string): Content {
  return html`<div>
    <dt>${term}</dt>
    <dd class=${className}>${value}</dd>
  </div>`;
}

/** A text to copy, with the button that does it. */
export function Copyable({ text }: { readonly text: string }): Content {
  const [label, setLabel] = useState("Copy");
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setLabel("Copied"),
      () => setLabel("Select and copy it yourself"),
    );
  };
  return html`<code class="to-copy" tabindex="0">${text}</code> <button type="button" onClick=${copy} aria-live="polite">${label}</button>`;
}

/** Returns a command to try. It names the service if that is at the page's own address: only then are changes and the log both here. */
export function tryIt({ canChange, logFromMs }: About, command: string): Content {
  const url = canChange && logFromMs !== undefined ? `--url ${location.origin} ` : "";
  return html`Try it: <code>npx holdfast ${url}${command}</code>`;
}
