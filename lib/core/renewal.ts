/** The times at which a client renews its lease and at which it stops treating the lease as held. */
import { recordBytes as largest, smallRecordBytes as smallest } from "./request-limits.js";

/**
 * The time after which a holder should renew: a third of its lease, so that two renewals may fail before the third is
 * late. Above `smallRecordBytes` it grows with the record, up to half of the lease, because DynamoDB charges each
 * renewal by the record's size.
 */
export function renewAfterMs(leaseMs: number, recordBytes = 0): number {
  const grown = Math.min(Math.max(0, recordBytes - smallest) / (largest - smallest), 1);
  return Math.floor((leaseMs * (2 + grown)) / 6);
}

/** The distance between a client's lease deadline and the end of the lease. For signalling only: safety rests on the takeover margin. */
export function clientMarginMs(leaseMs: number): number {
  return Math.max(leaseMs / 100, 50);
}
