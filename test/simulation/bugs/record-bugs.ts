/**
 * The must-fail switches of record writes: by clocks that disagree, of ids that are ahead, of any size, by another version. See bugs.ts.
 */
import type { Bug } from "./bug.js";

/** Mistakes in the changes that a record may undergo. */
export const RECORD_BUGS: readonly Bug[] = [
  {
    name: "handed-over-by-clocks-that-disagree",
    why: "a release offers the key by the latest clock, which may be days ahead: if nobody claims it, it is blocked for days",
    file: "lib/core/lock/queue.ts",
    edits: [["record.waiters.length === 0 || isSkewed(reading) ?", "record.waiters.length === 0 ?"]],
  },
  {
    name: "floor-by-the-later-clock",
    why: "a function whose clock is days ahead raises the low watermark days ahead: no new id fits above it",
    file: "lib/core/lock/expiry.ts",
    edits: [
      [
        "export function highestLowWatermark({ earliestMs }: ClockReading): LeaseId {\n  return highestLeaseIdAt(earliestMs +",
        "export function highestLowWatermark({ latestMs }: ClockReading): LeaseId {\n  return highestLeaseIdAt(latestMs +",
      ],
    ],
  },
  {
    name: "floor-ahead-of-new-ids",
    why: "the low watermark follows every id that leaves the tombstones: a caller that holds nothing raises it by cancelling ids that are ahead",
    file: "lib/core/lock/expiry.ts",
    edits: [["return leaseId <= highestLowWatermark(reading);", "return leaseId <= highestLowWatermark(reading) || reading.latestMs > 0;"]],
  },
  {
    name: "ids-ahead-of-the-floor",
    why: "a new id's limit counts from a low watermark that is ahead: no id fits such a key and a fresh one, as a set",
    file: "lib/core/lock/expiry.ts",
    edits: [
      ["return leaseId <= highestLowWatermark(reading);", "return leaseId <= highestLowWatermark(reading) || reading.latestMs > 0;"],
      [
        "if (timeMs > reading.latestMs + LIMITS.leaseIdAheadMs ||",
        "if (timeMs > Math.max(reading.latestMs, leaseIdTimeMs(record.lowWatermark) || 0) + LIMITS.leaseIdAheadMs ||",
        "lib/core/lock/grant.ts",
      ],
    ],
  },
  {
    name: "guard-on-another-reading",
    why: "the clocks are compared when a request arrives, and used after it waited for the table: one may be days off by then",
    file: "lib/service/request-context.ts",
    edits: [
      [
        'command.type === "release" ? known(this.#unguarded) : this.clocks,',
        'command.type === "release" ? known(this.#unguarded) : (this.clocks(), this.#unguarded),',
      ],
      ["applyAll(all, this.clocks)", "applyAll(all, this.#unguarded)"],
    ],
  },
  {
    name: "released-by-the-earlier-clock",
    why: "a function whose clock is days behind accepts the release of an expired lease as in time",
    file: "lib/core/lock/release.ts",
    breaks: "S6",
    noticedBy: ["test/core/lease-times.test.ts", "by clocks that are days apart is told as %s if the lease %s, and so is its repeat"],
    edits: [["return isSkewed(reading) && hold.expiresAtMs <= reading.latestMs ?", "return reading.latestMs < 0 ?"]],
  },
  {
    name: "never-by-the-earlier-clock",
    why: "a function whose clock is days behind reports never for a lease that ended and whose record was collected",
    file: "lib/core/lock/release.ts",
    edits: [["const ending = isSkewed(reading) &&", "const ending = reading.latestMs < 0 &&"]],
  },
  {
    name: "record-without-a-bound",
    why: "holders store as much as they like: every heartbeat pays for all of it",
    file: "lib/core/transition.ts",
    edits: [["if (bytes <= LIMITS.recordBytes ||", "if (bytes > 0 || bytes <= LIMITS.recordBytes ||"]],
  },
  {
    name: "newer-fields-dropped",
    why: "a record is written back without the fields of a newer version",
    file: "lib/store/dynamo/layout.ts",
    breaks: "internal",
    edits: [["(unknown.length > 0 &&", "(unknown.length < 0 &&"]],
  },
  {
    name: "queue-compared-by-its-text",
    why: "a queue is replaced only if this version would have written the same bytes: never, if a newer one wrote it",
    file: "lib/store/dynamo/replacement.ts",
    edits: [
      [
        "(seen.touches === undefined ? UNTOUCHED : TOUCHED_AS_SEEN)",
        '(seen.waiters.length > 0 ? "q = :queue" : seen.touches === undefined ? UNTOUCHED : TOUCHED_AS_SEEN)',
      ],
      [
        "...(touches === TOUCHED_AS_SEEN &&",
        '...(touches === "q = :queue" && { ":queue": toItem({ ...seen, waiters: seen.waiters.map(({ unknown, unknownOfPlace, ...known }) => known) }).q }),\n      ...(touches === TOUCHED_AS_SEEN &&',
      ],
    ],
  },
];
