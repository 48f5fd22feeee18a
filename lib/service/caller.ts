/** Whose behalf the service acts on. What a gateway vouched for, never what a request says of itself. */
import { digestOf } from "../core/canonical.js";

/** How a namespace may be named by whoever names it: no `/`, which ends it in the table's keys. */
export const NAMESPACE = /^[A-Za-z0-9._:~%-]{1,200}$/;

/** The namespace of every caller of a table that has no tenants, whichever way the caller comes in. */
export const SHARED_NAMESPACE = "default";

/** 72 bits: principals are told apart by them, and every write of a record is paid by its size. */
const DIGEST_CHARS = 12;

/** The form of a principal that commands and records have: as short for every caller, whatever the gateway calls it. */
export function digestOfPrincipal(principal: string): string {
  return digestOf(principal).slice(0, DIGEST_CHARS);
}

/** Who asks, as the gateway authenticated them. */
export interface Caller {
  /** Who may renew and release what this caller acquires. */
  readonly principal: string;
  /** Whose keys these are; no `/`. Callers of different namespaces never meet. */
  readonly namespace: string;
  readonly requestId: string;
}
