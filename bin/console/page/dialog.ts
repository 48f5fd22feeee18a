/** Dialogs: a change of somebody else's hold or run, with a reason and the key typed once more. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { formatDuration } from "../../duration.js";
import type { KeyView } from "../data.js";
import { ApiError, change } from "./api.js";
import type { Children, Content } from "./html.js";
import { html } from "./html.js";
import { nameOf, shortToken } from "./words.js";

interface Typed {
  readonly currentTarget: HTMLInputElement;
}

/** A modal dialog. The browser keeps the focus in it, closes it on Escape, and returns the focus afterwards. */
export function Dialog(given: { readonly title: string; readonly onClose: () => void; readonly children: Children }): Content {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return html`<dialog ref=${dialog} aria-labelledby=${id} onClose=${given.onClose}>
    <h2 id=${id}>${given.title}</h2>
    ${given.children}
  </dialog>`;
}

/** A form that makes a change after a reason and the typed key. */
function ChangeForm(given: {
  readonly keyToType: string;
  readonly action: string;
  readonly children?: Children;
  /** False while what the dialog tells is not known any more: then nothing is changed. @default true */
  readonly isKnown?: boolean;
  readonly onClose: () => void;
  readonly make: (reason: string) => Promise<void>;
}): Content {
  const { keyToType, action, isKnown = true, make, onClose } = given;
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [state, setState] = useState<{ readonly isBusy: boolean; readonly error?: string }>({ isBusy: false });
  const canMake = reason.trim() !== "" && typed === keyToType && isKnown && !state.isBusy;
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!canMake) return;
    setState({ isBusy: true });
    make(reason.trim()).then(onClose, (error: unknown) => setState({ isBusy: false, error: errorText(error) }));
  };
  return html`<form onSubmit=${submit} autocomplete="off">
    ${given.children}
    <label class="field wide">
      <span>Reason. It is logged.</span>
      <input
        required
        maxlength="200"
        autofocus
        value=${reason}
        placeholder="its machine is gone"
        onInput=${(event: Typed) => setReason(event.currentTarget.value)}
      />
    </label>
    <label class="field wide">
      <span
        >Type the key to confirm: <code class="to-type"><bdi>${keyToType}</bdi></code></span
      >
      <input
        required
        spellcheck="false"
        autocapitalize="off"
        value=${typed}
        onInput=${(event: Typed) => setTyped(event.currentTarget.value)}
      />
    </label>
    ${!isKnown && html`<p class="notice bad" role="alert">The console gets no answer: what is so now is not known.</p>`}
    ${state.error !== undefined && html`<p class="notice bad" role="alert">${state.error}</p>`}
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="danger" disabled=${!canMake}>${state.isBusy ? "Working…" : action}</button>
    </div>
  </form>`;
}

function errorText(error: unknown): string {
  const code = error instanceof ApiError ? error.code : "";
  if (code === "other-hold") return "Another lease holds the key by now. Nothing was broken.";
  if (code === "not-found") return "Nobody holds the key any more. Nothing was broken.";
  if (code === "run-in-progress") return "The run is running. Nothing was reset.";
  return error instanceof Error ? error.message : String(error);
}

/** Breaks a hold: lets its lease run out, or ends it at once. */
export function BreakDialog(given: {
  readonly view: KeyView;
  /** False if the view is old. */
  readonly isKnown: boolean;
  readonly onClose: () => void;
  readonly onDone: (news: string) => void;
}): Content {
  const { view, isKnown, onClose, onDone } = given;
  const { key } = view;
  // Those that were shown when the dialog opened: a later holder must not be broken by mistake.
  const [holders] = useState(view.holders);
  const [token, setToken] = useState(holders[0]?.fencingToken ?? 0);
  const [isForced, setForced] = useState(false);
  const named = html`<span class="nowrap">token ${shortToken(token)}</span>`;
  const make = async (reason: string): Promise<void> => {
    const { breakInMs } = await change<{ readonly breakInMs: number }>("break", {
      key,
      fencingToken: token,
      reason,
      ...(isForced && { drainMs: 0 }),
    });
    onDone(
      breakInMs > 0
        ? `${key}: the hold can't be renewed any more, and ends in ${formatDuration(breakInMs)} at the latest.`
        : `${key}: the hold is over.`,
    );
  };
  return html`<${Dialog} title="Break a hold" onClose=${onClose}>
    <${ChangeForm} keyToType=${key} action=${isForced ? "End it now" : "Break it"} isKnown=${isKnown} onClose=${onClose} make=${make}>
      ${
        holders.length > 1
          ? html`<fieldset>
              <legend>Which hold</legend>
              ${holders.map((holder) =>
                option(
                  "hold",
                  `${nameOf(holder)}, token ${shortToken(holder.fencingToken)}, held for ${formatDuration(holder.heldMs)}`,
                  holder.fencingToken === token,
                  () => setToken(holder.fencingToken),
                ),
              )}
            </fieldset>`
          : html`<p>
              It is held by <strong><bdi>${holders[0] && nameOf(holders[0])}</bdi></strong> under ${named}.
            </p>`
      }
      <fieldset>
        <legend>How</legend>
        ${option("how", "Let its lease run out. The holder can't renew it; nothing overlaps.", !isForced, () => setForced(false))}
        ${option("how", "End it now, by force. If the holder still works, only fencing tokens protect your data.", isForced, () => setForced(true))}
      </fieldset>
    </${ChangeForm}>
  </${Dialog}>`;
}

/** Resets a run. */
export function ResetDialog(given: {
  readonly runKey: string;
  /** False if the view is old. */
  readonly isKnown: boolean;
  readonly onClose: () => void;
  readonly onDone: (news: string) => void;
}): Content {
  const { runKey: key, isKnown, onClose, onDone } = given;
  const make = async (reason: string): Promise<void> => {
    await change("reset", { key, reason });
    onDone(`${key} is forgotten: the next start is a first attempt.`);
  };
  return html`<${Dialog} title="Reset a run" onClose=${onClose}>
    <${ChangeForm} keyToType=${key} action="Reset it" isKnown=${isKnown} onClose=${onClose} make=${make}>
      <p>Its outcome and checkpoint are deleted. The next caller runs the work again, from the beginning.</p>
    </${ChangeForm}>
  </${Dialog}>`;
}

function option(name: string, text: string, isChosen: boolean, choose: () => void): Content {
  return html`<label class="option"><input type="radio" name=${name} checked=${isChosen} onChange=${choose} /><span>${text}</span></label>`;
}
