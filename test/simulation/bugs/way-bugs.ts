/** The must-fail switches of a client with two ways: see bugs.ts. */
import type { Bug } from "./bug.js";

const FAILOVER = "lib/client/wire/failover.ts";
const WAYS = "lib/client/wire/ways.ts";
const PROOFS = "lib/client/wire/proofs.ts";
const COMPARISON = "lib/client/wire/compare-ways.ts";

/** Mistakes by which a switch of the way loses a lease, or leaves one behind. */
export const WAY_BUGS: readonly Bug[] = [
  {
    name: "switched-under-a-new-id",
    why: "an attempt on the other way is a new acquire with an id of its own: the first one, arriving late, is granted to nobody",
    file: FAILOVER,
    breaks: "L3",
    noticedBy: [
      "test/client/transport/failover.test.ts",
      "repeats an attempt that failed on the other way with the same leaseId, before the breaker trips",
    ],
    edits: [
      [
        "const route = this.#routeOf(ids);",
        `const route = this.#routeOf(ids);
    if (operation === "acquire" && this.#failedOn.has(ids[0])) {
      const last = ids[0].endsWith("0") ? "1" : "0";
      request = { ...request, leaseId: ids[0].slice(0, -1) + last };
    }`,
      ],
    ],
  },
  {
    name: "first-way-counts-as-definite",
    why: "an answer of the second way settles the operation, whatever the first way was asked: its id is never cancelled",
    file: "lib/client/wire/retry.ts",
    breaks: "L3",
    edits: [
      [
        "if (isA(outcome, NoResponse)) ambiguous = true;",
        "ambiguous = isA(outcome, NoResponse);\n    if (ambiguous) reason ??= undefined;",
      ],
    ],
  },
  {
    name: "table-under-its-own-principal",
    why: "the table is used as a direct client would, not as the service knows the caller: every renewal there is forbidden",
    file: FAILOVER,
    breaks: "L6",
    edits: [
      [
        "way.open(this.#identity ?? this.#deps.own)",
        "way.open({ ...(this.#identity ?? this.#deps.own), principal: this.#deps.own.principal })",
        WAYS,
      ],
      ["return this.met(other, lease, COMPARED);", 'return { found: lease ? "known" : "unclear", by: "lease" };', PROOFS],
    ],
  },
  {
    name: "any-ended-lease-proves-the-table",
    why: "a table counts as the service's if it answers as for a lease that ended: one that never saw the id does that too",
    file: COMPARISON,
    breaks: "S1",
    noticedBy: [
      "test/client/transport/failover.test.ts",
      "is neither ready nor refused while it answers so, and is asked again with later leases",
    ],
    edits: [['"unknown" : "unclear"', '"unknown" : "known"']],
  },
  {
    name: "unlisted-door-is-believed",
    why: "a second service is used because it answers, while the first is silent: it may have another table, which grants what others hold",
    file: PROOFS,
    breaks: "S1",
    noticedBy: ["test/client/transport/doors.test.ts", "is refused there with one clear error, and nothing is granted: %s"],
    edits: [["compare.checkDoors(state, door, this.#ways.nameOf(other));", ""]],
  },
  {
    name: "run-looked-up-as-a-lock",
    why: "a run is looked up among the locks of the table, which doesn't know it: a client that only runs never fails over",
    file: COMPARISON,
    breaks: "L6",
    noticedBy: ["test/client/transport/failover.test.ts", "fails over and returns, and keeps all of it"],
    edits: [['operation === "start" ? "runs" : kind', "kind"]],
  },
];
