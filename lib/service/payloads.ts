/** Values that runs keep: as text in the record where they are small, else on an item of their own. */
import { digestOf } from "../core/canonical.js";
import type { Refusal } from "../core/errors.js";
import { refuse } from "../core/errors.js";
import { LIMITS } from "../core/limits.js";
import type { Payload } from "../core/record.js";
import type { Address, LockStore } from "../store/port.js";

/** A value to be kept: what the record says of it, and its text where that is too large for the record. */
export interface Packed {
  readonly payload: Payload;
  readonly largeText?: string;
}

/** `value` as it is kept, or 413 naming the field. */
export function pack(field: string, value: unknown, maxBytes: number): { readonly ok: true; readonly packed: Packed } | Refusal {
  const text = JSON.stringify(value);
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > maxBytes) return refuse("too-large", { field, detail: `${field}: is ${bytes} bytes as JSON, of at most ${maxBytes}` });
  const payload = { digest: digestOf(value), bytes };
  return { ok: true, packed: bytes <= LIMITS.inlineBytes ? { payload: { ...payload, text } } : { payload, largeText: text } };
}

/** The value of `payload`; undefined when there is none, or its item is gone. */
export async function unpack(store: LockStore, address: Address, payload: Payload | undefined): Promise<unknown> {
  const text = payload && (payload.text ?? (await store.readPayload(address, payload.digest)));
  return text === undefined ? undefined : JSON.parse(text);
}
