/**
 * Every state of a key of any kind × every command: the answer, and the holders afterwards. A row has six lines, with
 * the columns named here; `+` means that the record changed.
 */
import { describe, expect, it } from "vitest";
import { OTHER, OTHER_WAITING, play, SAME_LEASE, SAME_SCOPE, SAME_SCOPE_WAITING, STATES } from "./kinds-table.js";
import { LEASE_MS, MARGIN_MS } from "../store/fixture.js";
import { ID, Key, permits, READER } from "./kinds-key.js";
import { QueueKey } from "./queue-key.js";

const LINES = {
  // acquire A | acquire A otherwise | renew A | release A | transfer A to D
  "the lease A": SAME_LEASE.slice(0, 5),
  // A to exclusive | A to shared | check A | break A | break A now
  "its mode, an operator": SAME_LEASE.slice(5),
  // C exclusive | C shared | C 1 of 3 | C 1 of 2
  "a new lease of its scope": SAME_SCOPE,
  // E exclusive | E shared | E 1 of 3 | E 2 of 3 | E 1 of 2
  "a new lease of another": OTHER,
  // As above, for a lease that waits
  "a new lease of its scope that waits": SAME_SCOPE_WAITING,
  "a new lease of another that waits": OTHER_WAITING,
};

// prettier-ignore
const CELLS: Readonly<Record<string, readonly string[]>> = {
  "free": [
    "granted +Ax | granted +Ax | lease-lost: never | never + | lease-lost: never",
    "lease-lost: never | lease-lost: never | lease-lost: never | not-found | not-found",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
  ],
  "free, used as a semaphore before": [
    "granted +Ax | granted +Ax | lease-lost: never | never + | lease-lost: never",
    "lease-lost: never | lease-lost: never | lease-lost: never | other-hold | other-hold",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
  ],
  "A exclusive": [
    "replayed Ax | lease-reused Ax | renewed +Ax | released + | transferred +Dx",
    "replayed Ax | changed +As | checked Ax | breaking +Ax! | broken +",
    "granted +Ax=Cx | granted +Ax=Cx | limit-mismatch Ax | limit-mismatch Ax",
    "locked Ax | locked Ax | limit-mismatch Ax | limit-mismatch Ax | limit-mismatch Ax",
    "granted +Ax=Cx | granted +Ax=Cx | limit-mismatch Ax | limit-mismatch Ax",
    "waiting +Ax Ex… | waiting +Ax Es… | limit-mismatch Ax | limit-mismatch Ax | limit-mismatch Ax",
  ],
  "A exclusive, ran out": [
    "lease-over Ax† | lease-over Ax† | lease-lost: expired Ax† | expired + | lease-lost: expired Ax†",
    "lease-lost: expired Ax† | lease-lost: expired Ax† | lease-lost: expired Ax† | breaking +Ax†! | broken +",
    "locked Ax† | locked Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
    "locked Ax† | locked Ax† | limit-mismatch Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
    "waiting +Ax† Cx… | waiting +Ax† Cs… | limit-mismatch Ax† | limit-mismatch Ax†",
    "waiting +Ax† Ex… | waiting +Ax† Es… | limit-mismatch Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
  ],
  "A exclusive, margin over by the later clock alone": [
    "lease-over Ax† | lease-over Ax† | lease-lost: expired Ax† | expired + | lease-lost: expired Ax†",
    "lease-lost: expired Ax† | lease-lost: expired Ax† | lease-lost: expired Ax† | breaking +Ax†! | broken +",
    "locked Ax† | locked Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
    "locked Ax† | locked Ax† | limit-mismatch Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
    "waiting +Ax† Cx… | waiting +Ax† Cs… | limit-mismatch Ax† | limit-mismatch Ax†",
    "waiting +Ax† Ex… | waiting +Ax† Es… | limit-mismatch Ax† | limit-mismatch Ax† | limit-mismatch Ax†",
  ],
  "A exclusive, margin over": [
    "lease-over Ax† | lease-over Ax† | lease-lost: expired Ax† | expired + | lease-lost: expired Ax†",
    "lease-lost: expired Ax† | lease-lost: expired Ax† | lease-lost: expired Ax† | broken + | broken +",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
  ],
  "A exclusive, being broken": [
    "replayed Ax! | lease-reused Ax! | lease-lost: broken Ax! | released + | lease-lost: broken Ax!",
    "lease-lost: broken Ax! | lease-lost: broken Ax! | checked Ax! | breaking Ax! | broken +",
    "locked Ax! | locked Ax! | limit-mismatch Ax! | limit-mismatch Ax!",
    "locked Ax! | locked Ax! | limit-mismatch Ax! | limit-mismatch Ax! | limit-mismatch Ax!",
    "locked Ax! | locked Ax! | limit-mismatch Ax! | limit-mismatch Ax!",
    "waiting +Ax! Ex… | waiting +Ax! Es… | limit-mismatch Ax! | limit-mismatch Ax! | limit-mismatch Ax!",
  ],
  "A shared": [
    "replayed As | lease-reused As | renewed +As | released + | transferred +Ds",
    "changed +Ax | replayed As | checked As | breaking +As! | broken +",
    "locked As | granted +As=Cs | limit-mismatch As | limit-mismatch As",
    "locked As | granted +As Es | limit-mismatch As | limit-mismatch As | limit-mismatch As",
    "locked As | granted +As=Cs | limit-mismatch As | limit-mismatch As",
    "waiting +As Ex… | granted +As Es | limit-mismatch As | limit-mismatch As | limit-mismatch As",
  ],
  "A shared, ran out": [
    "lease-over As† | lease-over As† | lease-lost: expired As† | expired + | lease-lost: expired As†",
    "lease-lost: expired As† | lease-lost: expired As† | lease-lost: expired As† | breaking +As†! | broken +",
    "locked As† | granted +As† Cs | limit-mismatch As† | limit-mismatch As†",
    "locked As† | granted +As† Es | limit-mismatch As† | limit-mismatch As† | limit-mismatch As†",
    "waiting +As† Cx… | granted +As† Cs | limit-mismatch As† | limit-mismatch As†",
    "waiting +As† Ex… | granted +As† Es | limit-mismatch As† | limit-mismatch As† | limit-mismatch As†",
  ],
  "A shared beside B": [
    "replayed As Bs | lease-reused As Bs | renewed +As Bs | released +Bs | transferred +Bs Ds",
    "locked +As^ Bs | replayed As Bs | checked As Bs | breaking +As! Bs | broken +Bs",
    "locked As Bs | granted +As=Cs Bs | limit-mismatch As Bs | limit-mismatch As Bs",
    "locked As Bs | granted +As Bs Es | limit-mismatch As Bs | limit-mismatch As Bs | limit-mismatch As Bs",
    "locked As Bs | granted +As=Cs Bs | limit-mismatch As Bs | limit-mismatch As Bs",
    "waiting +As Bs Ex… | granted +As Bs Es | limit-mismatch As Bs | limit-mismatch As Bs | limit-mismatch As Bs",
  ],
  "A shared beside B that ran out": [
    "replayed As Bs† | lease-reused As Bs† | renewed +As Bs† | released +Bs† | transferred +Bs† Ds",
    "locked +As^ Bs† | replayed As Bs† | checked As Bs† | breaking +As! Bs† | broken +Bs†",
    "locked As Bs† | granted +As=Cs Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
    "locked As Bs† | granted +As Bs† Es | limit-mismatch As Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
    "locked As Bs† | granted +As=Cs Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
    "waiting +As Bs† Ex… | granted +As Bs† Es | limit-mismatch As Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
  ],
  "A shared beside B whose margin is over": [
    "replayed As Bs† | lease-reused As Bs† | renewed +As Bs† | released +Bs† | transferred +Bs† Ds",
    "changed +Ax | replayed As Bs† | checked As Bs† | breaking +As! Bs† | broken +Bs†",
    "locked As Bs† | granted +As=Cs Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
    "locked As Bs† | granted +As Es | limit-mismatch As Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
    "locked As Bs† | granted +As=Cs Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
    "waiting +As Ex… | granted +As Es | limit-mismatch As Bs† | limit-mismatch As Bs† | limit-mismatch As Bs†",
  ],
  "A shared, B waits to upgrade": [
    "replayed As Bs^ | lease-reused As Bs^ | renewed +As Bs^ | released +Bs^ | transferred +Bs^ Ds",
    "upgrade-conflict As Bs^ | replayed As Bs^ | checked As Bs^ | breaking +As! Bs^ | broken +Bs^",
    "locked As Bs^ | granted +As=Cs Bs^ | limit-mismatch As Bs^ | limit-mismatch As Bs^",
    "locked As Bs^ | locked As Bs^ | limit-mismatch As Bs^ | limit-mismatch As Bs^ | limit-mismatch As Bs^",
    "locked As Bs^ | granted +As=Cs Bs^ | limit-mismatch As Bs^ | limit-mismatch As Bs^",
    "waiting +As Bs^ Ex… | waiting +As Bs^ Es… | limit-mismatch As Bs^ | limit-mismatch As Bs^ | limit-mismatch As Bs^",
  ],
  "A has 1 of 3": [
    "replayed A1/3 | lease-reused A1/3 | renewed +A1/3 | released + | transferred +D1/3",
    "limit-mismatch A1/3 | limit-mismatch A1/3 | checked A1/3 | breaking +A1/3! | broken +",
    "limit-mismatch A1/3 | limit-mismatch A1/3 | granted +A1/3=C1/3 | limit-mismatch A1/3",
    "limit-mismatch A1/3 | limit-mismatch A1/3 | granted +A1/3 E1/3 | granted +A1/3 E2/3 | limit-mismatch A1/3",
    "limit-mismatch A1/3 | limit-mismatch A1/3 | granted +A1/3=C1/3 | limit-mismatch A1/3",
    "limit-mismatch A1/3 | limit-mismatch A1/3 | granted +A1/3 E1/3 | granted +A1/3 E2/3 | limit-mismatch A1/3",
  ],
  "A has 1 of 3, B has 1": [
    "replayed A1/3 B1/3 | lease-reused A1/3 B1/3 | renewed +A1/3 B1/3 | released +B1/3 | transferred +B1/3 D1/3",
    "limit-mismatch A1/3 B1/3 | limit-mismatch A1/3 B1/3 | checked A1/3 B1/3 | breaking +A1/3! B1/3 | broken +B1/3",
    "limit-mismatch A1/3 B1/3 | limit-mismatch A1/3 B1/3 | granted +A1/3=C1/3 B1/3 | limit-mismatch A1/3 B1/3",
    "limit-mismatch A1/3 B1/3 | limit-mismatch A1/3 B1/3 | granted +A1/3 B1/3 E1/3 | locked A1/3 B1/3 | limit-mismatch A1/3 B1/3",
    "limit-mismatch A1/3 B1/3 | limit-mismatch A1/3 B1/3 | granted +A1/3=C1/3 B1/3 | limit-mismatch A1/3 B1/3",
    "limit-mismatch A1/3 B1/3 | limit-mismatch A1/3 B1/3 | granted +A1/3 B1/3 E1/3 | waiting +A1/3 B1/3 E2/3… | limit-mismatch A1/3 B1/3",
  ],
  "A has 1 of 3, B has 2": [
    "replayed A1/3 B2/3 | lease-reused A1/3 B2/3 | renewed +A1/3 B2/3 | released +B2/3 | transferred +B2/3 D1/3",
    "limit-mismatch A1/3 B2/3 | limit-mismatch A1/3 B2/3 | checked A1/3 B2/3 | breaking +A1/3! B2/3 | broken +B2/3",
    "limit-mismatch A1/3 B2/3 | limit-mismatch A1/3 B2/3 | granted +A1/3=C1/3 B2/3 | limit-mismatch A1/3 B2/3",
    "limit-mismatch A1/3 B2/3 | limit-mismatch A1/3 B2/3 | locked A1/3 B2/3 | locked A1/3 B2/3 | limit-mismatch A1/3 B2/3",
    "limit-mismatch A1/3 B2/3 | limit-mismatch A1/3 B2/3 | granted +A1/3=C1/3 B2/3 | limit-mismatch A1/3 B2/3",
    "limit-mismatch A1/3 B2/3 | limit-mismatch A1/3 B2/3 | waiting +A1/3 B2/3 E1/3… | waiting +A1/3 B2/3 E2/3… | limit-mismatch A1/3 B2/3",
  ],
  "A has 1 of 3, B had 2 and ran out": [
    "replayed A1/3 B2/3† | lease-reused A1/3 B2/3† | renewed +A1/3 B2/3† | released +B2/3† | transferred +B2/3† D1/3",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | checked A1/3 B2/3† | breaking +A1/3! B2/3† | broken +B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | granted +A1/3=C1/3 B2/3† | limit-mismatch A1/3 B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | locked A1/3 B2/3† | locked A1/3 B2/3† | limit-mismatch A1/3 B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | granted +A1/3=C1/3 B2/3† | limit-mismatch A1/3 B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | waiting +A1/3 B2/3† E1/3… | waiting +A1/3 B2/3† E2/3… | limit-mismatch A1/3 B2/3†",
  ],
  "A has 1 of 3, B had 2 and its margin is over": [
    "replayed A1/3 B2/3† | lease-reused A1/3 B2/3† | renewed +A1/3 B2/3† | released +B2/3† | transferred +B2/3† D1/3",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | checked A1/3 B2/3† | breaking +A1/3! B2/3† | broken +B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | granted +A1/3=C1/3 B2/3† | limit-mismatch A1/3 B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | granted +A1/3 E1/3 | granted +A1/3 E2/3 | limit-mismatch A1/3 B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | granted +A1/3=C1/3 B2/3† | limit-mismatch A1/3 B2/3†",
    "limit-mismatch A1/3 B2/3† | limit-mismatch A1/3 B2/3† | granted +A1/3 E1/3 | granted +A1/3 E2/3 | limit-mismatch A1/3 B2/3†",
  ],
  "B nested in A exclusive": [
    "replayed Ax=Bx | lease-reused Ax=Bx | renewed +Ax=Bx | released +Bx | locked Ax=Bx",
    "replayed Ax=Bx | locked Ax=Bx | checked Ax=Bx | breaking +Ax!=Bx! | broken +",
    "granted +Ax=Bx=Cx | granted +Ax=Bx=Cx | limit-mismatch Ax=Bx | limit-mismatch Ax=Bx",
    "locked Ax=Bx | locked Ax=Bx | limit-mismatch Ax=Bx | limit-mismatch Ax=Bx | limit-mismatch Ax=Bx",
    "granted +Ax=Bx=Cx | granted +Ax=Bx=Cx | limit-mismatch Ax=Bx | limit-mismatch Ax=Bx",
    "waiting +Ax=Bx Ex… | waiting +Ax=Bx Es… | limit-mismatch Ax=Bx | limit-mismatch Ax=Bx | limit-mismatch Ax=Bx",
  ],
  "B nested in A exclusive, A hung and ran out": [
    "lease-over Ax†=Bx | lease-over Ax†=Bx | lease-lost: expired Ax†=Bx | expired +Bx | lease-lost: expired Ax†=Bx",
    "lease-lost: expired Ax†=Bx | lease-lost: expired Ax†=Bx | lease-lost: expired Ax†=Bx | breaking +Ax†!=Bx! | broken +",
    "granted +Ax†=Bx=Cx | granted +Ax†=Bx=Cx | limit-mismatch Ax†=Bx | limit-mismatch Ax†=Bx",
    "locked Ax†=Bx | locked Ax†=Bx | limit-mismatch Ax†=Bx | limit-mismatch Ax†=Bx | limit-mismatch Ax†=Bx",
    "granted +Ax†=Bx=Cx | granted +Ax†=Bx=Cx | limit-mismatch Ax†=Bx | limit-mismatch Ax†=Bx",
    "waiting +Ax†=Bx Ex… | waiting +Ax†=Bx Es… | limit-mismatch Ax†=Bx | limit-mismatch Ax†=Bx | limit-mismatch Ax†=Bx",
  ],
  "B nested in A exclusive, B hung and ran out": [
    "replayed Ax=Bx† | lease-reused Ax=Bx† | renewed +Ax=Bx† | released +Bx† | transferred +Bx† Dx",
    "replayed Ax=Bx† | locked Ax=Bx† | checked Ax=Bx† | breaking +Ax!=Bx†! | broken +",
    "granted +Ax=Bx†=Cx | granted +Ax=Bx†=Cx | limit-mismatch Ax=Bx† | limit-mismatch Ax=Bx†",
    "locked Ax=Bx† | locked Ax=Bx† | limit-mismatch Ax=Bx† | limit-mismatch Ax=Bx† | limit-mismatch Ax=Bx†",
    "granted +Ax=Bx†=Cx | granted +Ax=Bx†=Cx | limit-mismatch Ax=Bx† | limit-mismatch Ax=Bx†",
    "waiting +Ax=Bx† Ex… | waiting +Ax=Bx† Es… | limit-mismatch Ax=Bx† | limit-mismatch Ax=Bx† | limit-mismatch Ax=Bx†",
  ],
  "B nested in A shared": [
    "replayed As=Bs | lease-reused As=Bs | renewed +As=Bs | released +Bs | locked As=Bs",
    "locked +As^=Bs | replayed As=Bs | checked As=Bs | breaking +As!=Bs! | broken +",
    "locked As=Bs | granted +As=Bs=Cs | limit-mismatch As=Bs | limit-mismatch As=Bs",
    "locked As=Bs | granted +As=Bs Es | limit-mismatch As=Bs | limit-mismatch As=Bs | limit-mismatch As=Bs",
    "locked As=Bs | granted +As=Bs=Cs | limit-mismatch As=Bs | limit-mismatch As=Bs",
    "waiting +As=Bs Ex… | granted +As=Bs Es | limit-mismatch As=Bs | limit-mismatch As=Bs | limit-mismatch As=Bs",
  ],
  "B nested in A, who has 2 of 3": [
    "replayed A2/3=B2/3 | lease-reused A2/3=B2/3 | renewed +A2/3=B2/3 | released +B2/3 | locked A2/3=B2/3",
    "limit-mismatch A2/3=B2/3 | limit-mismatch A2/3=B2/3 | checked A2/3=B2/3 | breaking +A2/3!=B2/3! | broken +",
    "limit-mismatch A2/3=B2/3 | limit-mismatch A2/3=B2/3 | granted +A2/3=B2/3=C2/3 | limit-mismatch A2/3=B2/3",
    "limit-mismatch A2/3=B2/3 | limit-mismatch A2/3=B2/3 | granted +A2/3=B2/3 E1/3 | locked A2/3=B2/3 | limit-mismatch A2/3=B2/3",
    "limit-mismatch A2/3=B2/3 | limit-mismatch A2/3=B2/3 | granted +A2/3=B2/3=C2/3 | limit-mismatch A2/3=B2/3",
    "limit-mismatch A2/3=B2/3 | limit-mismatch A2/3=B2/3 | granted +A2/3=B2/3 E1/3 | waiting +A2/3=B2/3 E2/3… | limit-mismatch A2/3=B2/3",
  ],
  "A exclusive, B waits": [
    "replayed Ax Bx… | lease-reused Ax Bx… | renewed +Ax Bx… | released +Bx? | transferred +Dx Bx…",
    "replayed Ax Bx… | changed +As Bx… | checked Ax Bx… | breaking +Ax! Bx… | broken +Bx?",
    "granted +Ax=Cx Bx… | granted +Ax=Cx Bx… | limit-mismatch Ax Bx… | limit-mismatch Ax Bx…",
    "locked Ax Bx… | locked Ax Bx… | limit-mismatch Ax Bx… | limit-mismatch Ax Bx… | limit-mismatch Ax Bx…",
    "granted +Ax=Cx Bx… | granted +Ax=Cx Bx… | limit-mismatch Ax Bx… | limit-mismatch Ax Bx…",
    "waiting +Ax Bx… Ex… | waiting +Ax Bx… Es… | limit-mismatch Ax Bx… | limit-mismatch Ax Bx… | limit-mismatch Ax Bx…",
  ],
  "A exclusive, B waits and the margin is over": [
    "lease-over Ax† Bx… | lease-over Ax† Bx… | lease-lost: expired Ax† Bx… | expired +Bx? | lease-lost: expired Ax† Bx…",
    "lease-lost: expired Ax† Bx… | lease-lost: expired Ax† Bx… | lease-lost: expired Ax† Bx… | broken +Bx? | broken +Bx?",
    "locked +Bx? | locked +Bx? | limit-mismatch +Bx? | limit-mismatch +Bx?",
    "locked +Bx? | locked +Bx? | limit-mismatch +Bx? | limit-mismatch +Bx? | limit-mismatch +Bx?",
    "waiting +Bx? Cx… | waiting +Bx? Cs… | limit-mismatch +Bx? | limit-mismatch +Bx?",
    "waiting +Bx? Ex… | waiting +Bx? Es… | limit-mismatch +Bx? | limit-mismatch +Bx? | limit-mismatch +Bx?",
  ],
  "A exclusive, B waits to read": [
    "replayed Ax Bs… | lease-reused Ax Bs… | renewed +Ax Bs… | released +Bs? | transferred +Dx Bs…",
    "replayed Ax Bs… | changed +As Bs? | checked Ax Bs… | breaking +Ax! Bs… | broken +Bs?",
    "granted +Ax=Cx Bs… | granted +Ax=Cx Bs… | limit-mismatch Ax Bs… | limit-mismatch Ax Bs…",
    "locked Ax Bs… | locked Ax Bs… | limit-mismatch Ax Bs… | limit-mismatch Ax Bs… | limit-mismatch Ax Bs…",
    "granted +Ax=Cx Bs… | granted +Ax=Cx Bs… | limit-mismatch Ax Bs… | limit-mismatch Ax Bs…",
    "waiting +Ax Bs… Ex… | waiting +Ax Bs… Es… | limit-mismatch Ax Bs… | limit-mismatch Ax Bs… | limit-mismatch Ax Bs…",
  ],
  "A shared, B waits to write": [
    "replayed As Bx… | lease-reused As Bx… | renewed +As Bx… | released +Bx? | transferred +Ds Bx…",
    "changed +Ax Bx… | replayed As Bx… | checked As Bx… | breaking +As! Bx… | broken +Bx?",
    "locked As Bx… | granted +As=Cs Bx… | limit-mismatch As Bx… | limit-mismatch As Bx…",
    "locked As Bx… | locked As Bx… | limit-mismatch As Bx… | limit-mismatch As Bx… | limit-mismatch As Bx…",
    "locked As Bx… | granted +As=Cs Bx… | limit-mismatch As Bx… | limit-mismatch As Bx…",
    "waiting +As Bx… Ex… | waiting +As Bx… Es… | limit-mismatch As Bx… | limit-mismatch As Bx… | limit-mismatch As Bx…",
  ],
  "A has 1 of 3, B waits for 3": [
    "replayed A1/3 B3/3… | lease-reused A1/3 B3/3… | renewed +A1/3 B3/3… | released +B3/3? | transferred +D1/3 B3/3…",
    "limit-mismatch A1/3 B3/3… | limit-mismatch A1/3 B3/3… | checked A1/3 B3/3… | breaking +A1/3! B3/3… | broken +B3/3?",
    "limit-mismatch A1/3 B3/3… | limit-mismatch A1/3 B3/3… | granted +A1/3=C1/3 B3/3… | limit-mismatch A1/3 B3/3…",
    "limit-mismatch A1/3 B3/3… | limit-mismatch A1/3 B3/3… | locked A1/3 B3/3… | locked A1/3 B3/3… | limit-mismatch A1/3 B3/3…",
    "limit-mismatch A1/3 B3/3… | limit-mismatch A1/3 B3/3… | granted +A1/3=C1/3 B3/3… | limit-mismatch A1/3 B3/3…",
    "limit-mismatch A1/3 B3/3… | limit-mismatch A1/3 B3/3… | waiting +A1/3 B3/3… E1/3… | waiting +A1/3 B3/3… E2/3… | limit-mismatch A1/3 B3/3…",
  ],
  "A shared, it is B's turn to read": [
    "replayed As Bs? | lease-reused As Bs? | renewed +As Bs? | released +Bs? | transferred +Ds Bs?",
    "locked +As^ Bs? | replayed As Bs? | checked As Bs? | breaking +As! Bs? | broken +Bs?",
    "locked As Bs? | granted +As=Cs Bs? | limit-mismatch As Bs? | limit-mismatch As Bs?",
    "locked As Bs? | granted +As Es Bs? | limit-mismatch As Bs? | limit-mismatch As Bs? | limit-mismatch As Bs?",
    "locked As Bs? | granted +As=Cs Bs? | limit-mismatch As Bs? | limit-mismatch As Bs?",
    "waiting +As Bs? Ex… | granted +As Es Bs? | limit-mismatch As Bs? | limit-mismatch As Bs? | limit-mismatch As Bs?",
  ],
  "A waits to write, B exclusive": [
    "waiting Bx Ax… | lease-reused Bx Ax… | lease-lost: never Bx Ax… | never +Bx | lease-lost: never Bx Ax…",
    "lease-lost: never Bx Ax… | lease-lost: never Bx Ax… | waiting Bx Ax… | other-hold Bx Ax… | other-hold Bx Ax…",
    "locked Bx Ax… | locked Bx Ax… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax…",
    "locked Bx Ax… | locked Bx Ax… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax…",
    "waiting +Bx Ax… Cx… | waiting +Bx Ax… Cs… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax…",
    "waiting +Bx Ax… Ex… | waiting +Bx Ax… Es… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax…",
  ],
  "A waits to write, B shared": [
    "waiting Bs Ax… | lease-reused Bs Ax… | lease-lost: never Bs Ax… | never +Bs | lease-lost: never Bs Ax…",
    "lease-lost: never Bs Ax… | lease-lost: never Bs Ax… | waiting Bs Ax… | other-hold Bs Ax… | other-hold Bs Ax…",
    "locked Bs Ax… | locked Bs Ax… | limit-mismatch Bs Ax… | limit-mismatch Bs Ax…",
    "locked Bs Ax… | locked Bs Ax… | limit-mismatch Bs Ax… | limit-mismatch Bs Ax… | limit-mismatch Bs Ax…",
    "waiting +Bs Ax… Cx… | waiting +Bs Ax… Cs… | limit-mismatch Bs Ax… | limit-mismatch Bs Ax…",
    "waiting +Bs Ax… Ex… | waiting +Bs Ax… Es… | limit-mismatch Bs Ax… | limit-mismatch Bs Ax… | limit-mismatch Bs Ax…",
  ],
  "A waits to read, B exclusive": [
    "waiting Bx As… | lease-reused Bx As… | lease-lost: never Bx As… | never +Bx | lease-lost: never Bx As…",
    "lease-lost: never Bx As… | lease-lost: never Bx As… | waiting Bx As… | other-hold Bx As… | other-hold Bx As…",
    "locked Bx As… | locked Bx As… | limit-mismatch Bx As… | limit-mismatch Bx As…",
    "locked Bx As… | locked Bx As… | limit-mismatch Bx As… | limit-mismatch Bx As… | limit-mismatch Bx As…",
    "waiting +Bx As… Cx… | waiting +Bx As… Cs… | limit-mismatch Bx As… | limit-mismatch Bx As…",
    "waiting +Bx As… Ex… | waiting +Bx As… Es… | limit-mismatch Bx As… | limit-mismatch Bx As… | limit-mismatch Bx As…",
  ],
  "A waits for 2 of 3, B has 2": [
    "waiting B2/3 A2/3… | lease-reused B2/3 A2/3… | lease-lost: never B2/3 A2/3… | never +B2/3 | lease-lost: never B2/3 A2/3…",
    "lease-lost: never B2/3 A2/3… | lease-lost: never B2/3 A2/3… | waiting B2/3 A2/3… | other-hold B2/3 A2/3… | other-hold B2/3 A2/3…",
    "limit-mismatch B2/3 A2/3… | limit-mismatch B2/3 A2/3… | locked B2/3 A2/3… | limit-mismatch B2/3 A2/3…",
    "limit-mismatch B2/3 A2/3… | limit-mismatch B2/3 A2/3… | locked B2/3 A2/3… | locked B2/3 A2/3… | limit-mismatch B2/3 A2/3…",
    "limit-mismatch B2/3 A2/3… | limit-mismatch B2/3 A2/3… | waiting +B2/3 A2/3… C1/3… | limit-mismatch B2/3 A2/3…",
    "limit-mismatch B2/3 A2/3… | limit-mismatch B2/3 A2/3… | waiting +B2/3 A2/3… E1/3… | waiting +B2/3 A2/3… E2/3… | limit-mismatch B2/3 A2/3…",
  ],
  "A waits to write, B's margin is over": [
    "granted +Ax | lease-reused Bx† Ax… | lease-lost: never Bx† Ax… | never +Bx† | lease-lost: never Bx† Ax…",
    "lease-lost: never Bx† Ax… | lease-lost: never Bx† Ax… | waiting Bx† Ax… | other-hold Bx† Ax… | other-hold Bx† Ax…",
    "locked +Ax? | locked +Ax? | limit-mismatch +Ax? | limit-mismatch +Ax?",
    "locked +Ax? | locked +Ax? | limit-mismatch +Ax? | limit-mismatch +Ax? | limit-mismatch +Ax?",
    "waiting +Ax? Cx… | waiting +Ax? Cs… | limit-mismatch +Ax? | limit-mismatch +Ax?",
    "waiting +Ax? Ex… | waiting +Ax? Es… | limit-mismatch +Ax? | limit-mismatch +Ax? | limit-mismatch +Ax?",
  ],
  "A waits to write, its scope's B exclusive": [
    "granted +Ax=Bx | lease-reused Bx Ax… | lease-lost: never Bx Ax… | never +Bx | lease-lost: never Bx Ax…",
    "lease-lost: never Bx Ax… | lease-lost: never Bx Ax… | waiting Bx Ax… | other-hold Bx Ax… | other-hold Bx Ax…",
    "granted +Bx=Cx Ax… | granted +Bx=Cx Ax… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax…",
    "locked Bx Ax… | locked Bx Ax… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax…",
    "granted +Bx=Cx Ax… | granted +Bx=Cx Ax… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax…",
    "waiting +Bx Ax… Ex… | waiting +Bx Ax… Es… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax… | limit-mismatch Bx Ax…",
  ],
  "A's turn to write": [
    "granted +Ax | lease-reused Ax? | lease-lost: never Ax? | never + | lease-lost: never Ax?",
    "lease-lost: never Ax? | lease-lost: never Ax? | waiting Ax? | other-hold Ax? | other-hold Ax?",
    "locked Ax? | locked Ax? | limit-mismatch Ax? | limit-mismatch Ax?",
    "locked Ax? | locked Ax? | limit-mismatch Ax? | limit-mismatch Ax? | limit-mismatch Ax?",
    "waiting +Ax? Cx… | waiting +Ax? Cs… | limit-mismatch Ax? | limit-mismatch Ax?",
    "waiting +Ax? Ex… | waiting +Ax? Es… | limit-mismatch Ax? | limit-mismatch Ax? | limit-mismatch Ax?",
  ],
  "A's turn to write, B waits": [
    "granted +Ax Bx… | lease-reused Ax? Bx… | lease-lost: never Ax? Bx… | never +Bx? | lease-lost: never Ax? Bx…",
    "lease-lost: never Ax? Bx… | lease-lost: never Ax? Bx… | waiting Ax? Bx… | other-hold Ax? Bx… | other-hold Ax? Bx…",
    "locked Ax? Bx… | locked Ax? Bx… | limit-mismatch Ax? Bx… | limit-mismatch Ax? Bx…",
    "locked Ax? Bx… | locked Ax? Bx… | limit-mismatch Ax? Bx… | limit-mismatch Ax? Bx… | limit-mismatch Ax? Bx…",
    "waiting +Ax? Bx… Cx… | waiting +Ax? Bx… Cs… | limit-mismatch Ax? Bx… | limit-mismatch Ax? Bx…",
    "waiting +Ax? Bx… Ex… | waiting +Ax? Bx… Es… | limit-mismatch Ax? Bx… | limit-mismatch Ax? Bx… | limit-mismatch Ax? Bx…",
  ],
  "A's turn to write lapsed": [
    "granted +Ax | lease-reused Ax? | lease-lost: never Ax? | never + | lease-lost: never Ax?",
    "lease-lost: never Ax? | lease-lost: never Ax? | waiting Ax? | other-hold Ax? | other-hold Ax?",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
  ],
  "A's turn to write lapsed, B waits and was not heard of": [
    "granted +Ax Bx… | lease-reused Ax? Bx… | lease-lost: never Ax? Bx… | never +Bx? | lease-lost: never Ax? Bx…",
    "lease-lost: never Ax? Bx… | lease-lost: never Ax? Bx… | waiting Ax? Bx… | other-hold Ax? Bx… | other-hold Ax? Bx…",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
    "granted +Cx | granted +Cs | granted +C1/3 | granted +C1/2",
    "granted +Ex | granted +Es | granted +E1/3 | granted +E2/3 | granted +E1/2",
  ],
  "A's turn to read": [
    "granted +As | lease-reused As? | lease-lost: never As? | never + | lease-lost: never As?",
    "lease-lost: never As? | lease-lost: never As? | waiting As? | other-hold As? | other-hold As?",
    "locked As? | granted +Cs As? | limit-mismatch As? | limit-mismatch As?",
    "locked As? | granted +Es As? | limit-mismatch As? | limit-mismatch As? | limit-mismatch As?",
    "waiting +As? Cx… | granted +Cs As? | limit-mismatch As? | limit-mismatch As?",
    "waiting +As? Ex… | granted +Es As? | limit-mismatch As? | limit-mismatch As? | limit-mismatch As?",
  ],
  "A's turn to read, B waits to write": [
    "granted +As Bx… | lease-reused As? Bx… | lease-lost: never As? Bx… | never +Bx? | lease-lost: never As? Bx…",
    "lease-lost: never As? Bx… | lease-lost: never As? Bx… | waiting As? Bx… | other-hold As? Bx… | other-hold As? Bx…",
    "locked As? Bx… | locked As? Bx… | limit-mismatch As? Bx… | limit-mismatch As? Bx…",
    "locked As? Bx… | locked As? Bx… | limit-mismatch As? Bx… | limit-mismatch As? Bx… | limit-mismatch As? Bx…",
    "waiting +As? Bx… Cx… | waiting +As? Bx… Cs… | limit-mismatch As? Bx… | limit-mismatch As? Bx…",
    "waiting +As? Bx… Ex… | waiting +As? Bx… Es… | limit-mismatch As? Bx… | limit-mismatch As? Bx… | limit-mismatch As? Bx…",
  ],
  "A's turn for 2 of 3": [
    "granted +A2/3 | lease-reused A2/3? | lease-lost: never A2/3? | never + | lease-lost: never A2/3?",
    "lease-lost: never A2/3? | lease-lost: never A2/3? | waiting A2/3? | other-hold A2/3? | other-hold A2/3?",
    "limit-mismatch A2/3? | limit-mismatch A2/3? | granted +C1/3 A2/3? | limit-mismatch A2/3?",
    "limit-mismatch A2/3? | limit-mismatch A2/3? | granted +E1/3 A2/3? | locked A2/3? | limit-mismatch A2/3?",
    "limit-mismatch A2/3? | limit-mismatch A2/3? | granted +C1/3 A2/3? | limit-mismatch A2/3?",
    "limit-mismatch A2/3? | limit-mismatch A2/3? | granted +E1/3 A2/3? | waiting +A2/3? E2/3… | limit-mismatch A2/3?",
  ],
};

describe("in every state of every kind", () => {
  it("there is a row for each", () => {
    expect(Object.keys(CELLS)).toEqual(STATES.map(({ state }) => state));
  });

  describe.each(STATES)("$state", (state) => {
    it.each(Object.entries(LINES).map(([who, columns], line) => ({ who, columns, line })))("$who", ({ columns, line }) => {
      expect(play(state, columns)).toBe(CELLS[state.state]?.[line]);
    });

    it("a lease that never held is told so, and changes nobody", () => {
      const key = new QueueKey();
      for (const step of state.steps) step(key);
      const { all } = key;
      const never = { ok: false, code: "lease-lost", reason: "never" };
      expect([key.renew("E"), key.transfer("E", "D"), key.change("E", "exclusive"), key.check("E")]).toMatchObject([
        never,
        never,
        never,
        never,
      ]);
      expect(key.release("E")).toEqual({ ok: true, state: "never" });
      expect(key.all).toBe(all);
      expect(key.acquire("E", permits(1))).toMatchObject({ code: "lease-over" });
    });
  });
});

describe("what is told of a lease", () => {
  it("is how many levels its scope has, by their ids: repeats don't count", () => {
    const key = new Key();
    const scope = { scope: "scope S" };
    key.acquire("A", scope);
    for (let times = 0; times < 5; times++) key.acquire("B", scope);
    expect([key.lease("A").holdCount, key.lease("B").holdCount]).toEqual([2, 2]);
    expect(key.acquire("C", { ...scope, leaseMs: 1_000 })).toMatchObject({ lease: { holdCount: 3 } });
    // A reentrant hold lasts as long as it was granted for, regardless of the other leases in its scope.
    key.at(1_000).renew("A", 60_000);
    expect(key.check("C")).toMatchObject({ code: "lease-lost", reason: "expired" });
    expect(key.lease("A").holdCount).toBe(2);
    key.release("B");
    expect([key.lease("A").holdCount, key.holds]).toEqual([1, "Ax=Cx†"]);
  });

  it("is free when the last level is gone, whichever that is", () => {
    for (const order of ["ABC", "CBA", "BCA"]) {
      const key = new Key();
      for (const level of "ABC") key.acquire(level, { scope: "scope S" });
      for (const level of order) {
        expect(key.acquire("E", { requestHash: level })).toMatchObject({ code: "locked" });
        expect(key.release(level)).toMatchObject({ state: "released" });
      }
      expect(key.acquire("F")).toMatchObject({ how: "granted" });
    }
  });

  it("is the floor that a resource compares, to readers and who has permits, never to a writer", () => {
    const key = new Key();
    key.acquire("A");
    expect(key.lease("A")).not.toHaveProperty("fenceFloor");
    key.release("A");
    key.at(5).acquire("B", READER);
    key.acquire("C", READER);
    // The first reader raises fenceFloor; the other readers share it.
    expect([key.lease("B").fenceFloor, key.lease("C").fenceFloor]).toEqual([key.tokenOf("B"), key.tokenOf("B")]);
    key.release("B");
    key.acquire("F", READER);
    expect(key.lease("F").fenceFloor).toBe(key.lease("C").fenceFloor);
    key.release("C");
    key.release("F");
    key.at(6).acquire("D", permits(2));
    expect(key.lease("D").fenceFloor).toBe(key.tokenOf("D"));
    key.release("D");
    key.at(7).acquire("E");
    expect(key.record?.fenceFloor).toBe(key.tokenOf("E"));
  });

  it("is above a dead writer's token, so that its late write is refused", () => {
    const key = new Key();
    key.acquire("A");
    const token = key.tokenOf("A");
    key.at(LEASE_MS + MARGIN_MS).acquire("B", { mode: "shared" });
    key.acquire("C", { mode: "shared" });
    expect(key.lease("B").fenceFloor).toBeGreaterThan(token);
    expect(key.lease("C").fenceFloor).toBe(key.lease("B").fenceFloor);
  });

  it("is as many leases as a key takes, and not one more", () => {
    const key = new Key();
    for (let order = 1; order <= 150; order++) key.acquire(String.fromCharCode(64 + order), READER);
    const next = String.fromCharCode(64 + 151);
    expect(key.acquire(next, READER)).toMatchObject({ code: "key-full" });
    key.release("A");
    expect(key.acquire(next, READER)).toMatchObject({ how: "granted" });
    expect(Object.keys(key.record?.holds ?? {})).toHaveLength(150);
    expect(key.record?.holds).not.toHaveProperty(ID("A"));
  });
});
