/** The caller that the service acts for, as the gateway authenticated it. A request's own claims never count. */
import { digestOf } from "../core/canonical.js";

/** The form of a namespace. It has no `/`, which ends it in the table's keys. */
export const NAMESPACE = /^[A-Za-z0-9._:~%-]{1,200}$/;

/** The namespace of every caller of a table without tenants, whichever way the caller comes in. */
export const SHARED_NAMESPACE = "default";

/** 72 bits: enough to distinguish principals, and short, because DynamoDB charges every write by the record's size. */
const DIGEST_CHARS = 12;

/** Returns the form of a principal in commands and records: equally short for every caller, whatever the gateway calls it. */
export function digestOfPrincipal(principal: string): string {
  return digestOf(principal).slice(0, DIGEST_CHARS);
}

/** An authenticated caller. */
export interface Caller {
  /** The principal that may renew and release this caller's leases. */
  readonly principal: string;
  /** The namespace of the caller's keys; no `/`. Callers of different namespaces never share a key. */
  readonly namespace: string;
  readonly requestId: string;
}
