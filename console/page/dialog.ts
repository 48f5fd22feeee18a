/** Dialogs: a change of somebody else's hold or run, with a reason and, where work may overlap or is lost, the key typed once more. */
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatDuration } from "../text/duration.js";
import type { KeyHolder, KeyView, RunOfKey } from "../data.js";
import { ApiError, change, RIGHT, wordsOf } from "./api.js";
import { type Children, type Content, html } from "./html.js";
import { afterText, lifeOf, nameOf, overInMs, shortToken } from "./words.js";

/** A modal dialog. The browser keeps the focus in it, closes it on Escape, and returns the focus afterwards. */
export function Dialog(props: { readonly title: string; readonly onClose: () => void; readonly children: Children }): Content {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => current?.close();
  }, []);
  return html`<dialog ref=${dialog} aria-labelledby=${id} onClose=${props.onClose}>
    <h2 id=${id}>${props.title}</h2>
    ${props.children}
  </dialog>`;
}

/** The properties of a dialog that makes a change. */
interface ChangeProps {
  /** False if the view is old: then nothing is changed. */
  readonly isKnown: boolean;
  readonly onClose: () => void;
  readonly onDone: (news: string) => void;
}

/** A dialog that makes a change after a reason and, if one is given, the typed key. */
function ChangeDialog(
  props: ChangeProps & {
    readonly title: string;
    readonly keyToType?: string | undefined;
    readonly action: string;
    readonly children?: Children;
    /** Makes the change. Resolves with the news of it. */
    readonly make: (reason: string) => Promise<string>;
  },
): Content {
  const { title, keyToType, action, isKnown, onClose } = props;
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [state, setState] = useState<{ readonly isBusy: boolean; readonly error?: string }>({ isBusy: false });
  const canMake = reason.trim() !== "" && (keyToType === undefined || typed === keyToType) && isKnown && !state.isBusy;
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!canMake) return;
    setState({ isBusy: true });
    props.make(reason.trim()).then(
      (news) => {
        props.onDone(news);
        onClose();
      },
      (error: unknown) => setState({ isBusy: false, error: errorText(error) }),
    );
  };
  return html`<${Dialog} title=${title} onClose=${onClose}><form onSubmit=${submit} autocomplete="off">
    ${props.children}
    ${field("Reason. It is logged.", reason, setReason, { maxlength: "200", autofocus: true, placeholder: "for example: its machine is gone" })}
    ${keyToType !== undefined && field(html`Type the key to confirm: <code class="to-type"><bdi>${keyToType}</bdi></code>`, typed, setTyped, { spellcheck: "false", autocapitalize: "off" })}
    ${!isKnown && html`<p class="notice over" role="alert">Nobody answers: what is so now is not known.</p>`}
    ${state.error !== undefined && html`<p class="notice over" role="alert">${state.error}</p>`}
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="danger" aria-disabled=${!canMake}>${state.isBusy ? "Working…" : action}</button>
    </div>
  </form></${Dialog}>`;
}

function field(label: Children, value: string, set: (value: string) => void, attributes: object): Content {
  return html`<label class="field wide">
    <span>${label}</span>
    <input
      required
      ...${attributes}
      value=${value}
      onInput=${({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => set(currentTarget.value)}
    />
  </label>`;
}

function errorText(error: unknown): string {
  const code = error instanceof ApiError ? error.code : "";
  if (code === "other-hold") return "Another lease came since. Nothing was changed.";
  if (code === "not-found") return "Nobody holds the key any more. Nothing was broken.";
  if (code === "run-in-progress") return "The run is running. Nothing was reset.";
  if (code === "forbidden") return `You may not do this: ${RIGHT}. Nothing was changed.`;
  return error instanceof Error ? wordsOf(error) : String(error);
}

/** Breaks a hold: lets its lease run out, or ends it at once. */
export function BreakDialog(props: ChangeProps & { readonly view: KeyView }): Content {
  const { view, isKnown } = props;
  const { key } = view;
  // Those that were shown when the dialog opened: a later holder must not be broken by mistake.
  const [holders] = useState(view.holders);
  const [token, setToken] = useState(holders[0]?.fencingToken ?? 0);
  const [isForced, setForced] = useState(false);
  const chosen = view.holders.find(({ fencingToken }) => fencingToken === token);
  const make = async (reason: string): Promise<string> => {
    const force = isForced ? { drainMs: 0 } : {};
    const { breakInMs } = await change<{ readonly breakInMs: number }>("break", { key, fencingToken: token, reason, ...force });
    if (breakInMs <= 0) return `${key}: the hold is over.`;
    return `${key}: the hold can't be renewed any more, and ends in ${formatDuration(breakInMs)} at the latest.`;
  };
  const [keyToType, action] = isForced ? [key, "End it now"] : [undefined, "Break it"];
  return html`<${ChangeDialog} ...${props} title=${`Break the hold on ${key}`} keyToType=${keyToType} action=${action} make=${make}>
    ${holders.length > 1 && whichHold(holders, token, setToken)}
    ${
      isKnown &&
      html`<p role="status">
        <bdi>${chosen ? `${nameOf(chosen)}: ${lifeOf(chosen, view)}.` : "This hold is over by now."}</bdi>${" "}
        <span class="muted nowrap">token ${shortToken(token)}</span>
      </p>`
    }
    <fieldset>
      <legend>How</legend>
      ${option("how", safeText(view, chosen), !isForced, () => setForced(false))}
      ${option("how", nowText(view, chosen), isForced, () => setForced(true))}
    </fieldset>
    <p class="muted">
      Breaking ends the hold, not the work: that runs on until its holder asks for the next renewal.
    </p>
  </${ChangeDialog}>`;
}

function whichHold(holders: KeyView["holders"], chosen: number, choose: (fencingToken: number) => void): Content {
  const options = holders.map(({ owner, fencingToken, heldMs }) => {
    const text = `${nameOf({ owner })}, token ${shortToken(fencingToken)}, held for ${formatDuration(heldMs)}`;
    return option("hold", text, fencingToken === chosen, () => choose(fencingToken));
  });
  return html`<fieldset>
    <legend>Which hold</legend>
    ${options}
  </fieldset>`;
}

function safeText(view: KeyView, hold: KeyHolder | undefined): Content {
  const then = hold && afterText(view, hold, `in ${formatDuration(overInMs(view, hold))} at the latest`);
  return html`<strong>Safe:</strong> it can't renew, and nothing overlaps${then && html`; <bdi>${then}</bdi>`}.`;
}

function nowText(view: KeyView, hold: KeyHolder | undefined): Content {
  return html`<strong>Now:</strong> <bdi>${hold ? afterText(view, hold, "at once") : "it is over"}</bdi>. If the holder still works, only
    fencing tokens protect your data.`;
}

/** Resets a limit, whose name is typed. */
export function ResetLimitDialog(props: ChangeProps & { readonly name: string }): Content {
  const { name } = props;
  const news = `${name} is all back: the next caller may bring other rates.`;
  const make = (reason: string): Promise<string> => change("reset-limit", { key: name, reason }).then(() => news);
  return html`<${ChangeDialog} ...${props} title="Reset a limit" keyToType=${name} action="Reset it" make=${make}>
    <p>Its burst may start at once, beside what started before.</p>
  </${ChangeDialog}>`;
}

/** Resets a run, whose key is typed. */
export function ResetDialog(props: ChangeProps & { readonly run: Pick<RunOfKey, "key" | "checkpoint" | "fencingToken"> }): Content {
  // The run that was shown when the dialog opened: a later one must not be forgotten by mistake.
  const [{ key, checkpoint, fencingToken }] = useState(props.run);
  const news = `${key} is forgotten: the next start is a first attempt.`;
  const make = (reason: string): Promise<string> => change("reset", { key, reason, fencingToken }).then(() => news);
  return html`<${ChangeDialog} ...${props} title="Reset a run" keyToType=${key} action="Reset it" make=${make}>
    <p>Its outcome is deleted: the next caller runs the work again.</p>
    ${checkpoint !== undefined && html`<p>This checkpoint is dropped:</p>`}
    ${checkpoint !== undefined && html`<pre tabindex="0">${checkpoint}</pre>`}
  </${ChangeDialog}>`;
}

function option(name: string, text: Children, isChosen: boolean, choose: () => void): Content {
  return html`<label class="option"><input type="radio" name=${name} checked=${isChosen} onChange=${choose} /><span>${text}</span></label>`;
}
