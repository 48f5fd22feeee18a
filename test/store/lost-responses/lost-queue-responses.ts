/** Operations in a queue whose responses are lost. */
import { DEFAULTS } from "../../../lib/core/limits.js";
import { decided, rowsOn } from "./lost-rows.js";
import { QueueScene } from "../queue-fixture.js";
import { A, B, C, D } from "../fixture.js";

const enqueues = (condition: string): boolean => condition.includes("size(qi) < :most");
const claims = (condition: string): boolean => condition.includes("h.#me.p = :by");
const handsOver = (condition: string): boolean => condition.includes("q[0].u > :earlier");
const hears = (condition: string): boolean => condition.startsWith("qi[");

/** A holds, and these wait. The process has seen the record. */
const line =
  (...ids: readonly string[]) =>
  async (lock: QueueScene): Promise<unknown> => {
    await lock.acquire(A);
    for (const [ms, id] of ids.entries()) await lock.at(ms + 1).queue(id);
    return lock.at(ids.length + 1);
  };
/** A has released, and the first waiter has an offer. */
const turn =
  (...ids: readonly string[]) =>
  async (lock: QueueScene): Promise<unknown> => {
    await line(...ids)(lock);
    await lock.release(A);
    return lock.at(ids.length + 2);
  };
const HALF_MS = 1 + DEFAULTS.waiterTtlMs / 2;
const HIGH = { priority: 5 } as const;

/** The rows. */
export const ROWS = rowsOn<QueueScene>(QueueScene, [
  { operation: "enqueue behind others", before: line(B), act: (lock) => lock.queue(C), write: enqueues, outcome: "waiting" },
  { operation: "enqueue ahead of others", before: line(B), act: (lock) => lock.queue(C, HIGH), write: decided, outcome: "waiting" },
  { operation: "hand over", before: line(B, C), act: (lock) => lock.release(A), write: handsOver, outcome: "released" },
  {
    operation: "hand over past the dead",
    before: async (lock) => (await line(B, C)(lock), await lock.at(9_000).queue(C), lock.at(DEFAULTS.waiterTtlMs + 2)),
    act: (lock) => lock.release(A),
    write: decided,
    outcome: "expired",
  },
  {
    operation: "claim",
    before: turn(B, C),
    act: (lock) => lock.queue(B),
    write: claims,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "claim in the millisecond of the last grant",
    before: async (lock) => (await turn(B)(lock), lock.at(0)),
    act: (lock) => lock.queue(B),
    write: decided,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "take a turn that lapsed",
    before: async (lock) => (await turn(B, C)(lock), lock.at(4 + DEFAULTS.offerWindowMs)),
    act: (lock) => lock.queue(C),
    write: decided,
    outcome: "replayed",
    otherwise: "granted",
  },
  { operation: "leave the queue", before: line(B, C, D), act: (lock) => lock.release(C), write: decided, outcome: "never" },
  { operation: "leave one's turn to the next", before: turn(B, C), act: (lock) => lock.release(B), write: decided, outcome: "never" },
]);

/** A keep-alive poll: if it is sent again, it is written again, with the same answer. */
export const HEARD = { before: line(B, C), atMs: HALF_MS, id: B, write: hears } as const;
