/** The must-fail switches of the store on DynamoDB: see bugs.ts. */
import type { Bug } from "./bug.js";

const HOLDING = "lib/store/dynamo/holding.ts";
const PREDICATES = "lib/store/dynamo/predicates.ts";

/** Mistakes in what is written without the core, or over what it decided on: most are a condition that is left out. */
export const STORE_BUGS: readonly Bug[] = [
  {
    name: "fast-version-from-nothing",
    why: "the fast grant of a collected key starts its versions at one again",
    file: HOLDING,
    edits: [["v = if_not_exists(v, :now) + :one", "v = if_not_exists(v, :zero) + :one"]],
  },
  {
    name: "fast-token-by-the-clock-alone",
    why: "the fast grant takes its clock for the token, although the key has a later one",
    file: HOLDING,
    edits: [["[is.FREE, is.CLOCK_ABOVE_FENCE, ", "[is.FREE, "]],
  },
  {
    name: "fast-grant-below-the-floor",
    why: "the fast grant leaves the floor that resources compare where it was",
    file: HOLDING,
    edits: [["SET h = :h, f = :token, ff = :token, ", "SET h = :h, f = :token, ff = if_not_exists(ff, :token), "]],
  },
  {
    name: "fast-renewal-that-shortens",
    why: "the fast renewal sets the expiry, also to an earlier one",
    file: PREDICATES,
    edits: [["${my.expiresAtMs} <= :expires AND ${my.marginMs} <= :margin", "${my.marginMs} <= :margin"]],
  },
  {
    name: "fast-grant-of-an-ended-id",
    why: "the fast grant doesn't look whether its id ended before: a late duplicate holds",
    file: HOLDING,
    edits: [["is.CLOCK_ABOVE_FENCE, is.NEVER_ENDED, ", 'is.CLOCK_ABOVE_FENCE, "NOT (v = :me)", ']],
  },
  {
    name: "fast-release-of-all",
    why: "the fast release hands the key over, although others still hold it",
    file: PREDICATES,
    breaks: "S12",
    edits: [["size(h) = :one AND (size(qi) = :zero OR", "(size(qi) = :zero OR"]],
  },
  {
    name: "fast-claim-of-a-held-key",
    why: "the fast claim takes a lease for an offer: a repeated acquire gets another token",
    file: PREDICATES,
    edits: [["attribute_not_exists(${my.fencingToken}) AND ${my.principal} = :by", "${my.principal} = :by"]],
  },
  {
    name: "fast-start-over-an-outcome",
    why: "the fast start doesn't look whether the key has a run already",
    file: HOLDING,
    breaks: "R4",
    edits: [["...(run ? [is.NEVER_RUN] : []), ", ""]],
  },
  {
    name: "fast-outcome-kept-for-no-time",
    why: "the fast outcome of a run is forgotten as soon as it is recorded",
    file: HOLDING,
    edits: [["= ${is.run.keepResultMs} + :now", "= :now"]],
  },
  {
    name: "written-on-any-version",
    why: "a decision is written over whatever the record has become since it was read",
    file: "lib/store/dynamo/replacement.ts",
    breaks: "S11",
    edits: [['const condition = seen ? ["v = :seen", ', 'const condition = seen ? ["v >= :seen", ']],
  },
  {
    name: "nothing-seen-lately",
    why: "no record is remembered: everybody in a crowd writes, and loses to the others",
    file: "lib/store/dynamo/recent-records.ts",
    edits: [["const FRESH_MS = 5000;", "const FRESH_MS = -1;"]],
  },
  {
    name: "fast-outcome-after-the-lease",
    why: "the fast outcome of a run is recorded whether or not its lease still lasts",
    file: "lib/store/dynamo/ending.ts",
    edits: [
      [
        "condition: [is.MINE, is.LIVE, is.NOT_BROKEN, ...ended.condition, ",
        'condition: [is.MINE, "NOT (v = :earlier)", is.NOT_BROKEN, ...ended.condition, ',
      ],
    ],
  },
];
