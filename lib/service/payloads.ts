/** Values that runs store: a small one as text in the record, a large one in an item of its own. */
import { digestOf } from "../core/canonical.js";
import type { Refusal } from "../core/errors.js";
import { refuse } from "../core/errors.js";
import { LIMITS } from "../core/limits.js";
import type { Payload } from "../core/record.js";
import type { Requests } from "./request.js";

/** A value to store: its part in the record, and its text if that is too large for the record. */
interface Packed {
  readonly ok: true;
  readonly payload: Payload;
  readonly largeText?: string;
}

/** Converts `value` to its stored form, or refuses it with 413 naming the field. */
export function pack(field: string, value: unknown, maxBytes: number): Packed | Refusal {
  const text = JSON.stringify(value);
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > maxBytes) return refuse("too-large", { field, detail: `${field}: is ${bytes} bytes as JSON, of at most ${maxBytes}` });
  const payload = { digest: digestOf(value), bytes };
  return bytes <= LIMITS.inlineBytes ? { ok: true, payload: { ...payload, text } } : { ok: true, payload, largeText: text };
}

/** Returns the value of a run's `payload`; undefined without a payload, or if its item was collected. */
export async function unpack(requests: Requests, key: string, payload: Payload | undefined): Promise<unknown> {
  const text = payload && (payload.text ?? (await requests.store.readPayload(requests.addressOf(key, "runs"), payload.digest)));
  return text === undefined ? undefined : JSON.parse(text);
}
