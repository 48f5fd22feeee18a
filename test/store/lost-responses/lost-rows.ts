/** Operations on a key whose responses are lost, and the write of each whose response it is. */
import type { AnswerTo, Command } from "../../../lib/core/commands.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import type { LockStore } from "../../../lib/store/port.js";
import { A, B, C, D, LEASE_MS, MARGIN_MS, Fixture } from "../fixture.js";
import { QueueScene } from "../queue-fixture.js";
import { RunScene, small } from "../run-fixture.js";

/** The condition of a write that followed a read: it has the version seen, or requires that there is no record. */
const decided = /^(?:v = :seen|attribute_not_exists\(v\))/;
/** That of a write without a read. */
const fast = /^(?!v = :seen|attribute_not_exists\(v\))/;
/** That of a waiter that joins the queue. */
export const ENQUEUES = /size\(qi\) < :most/;
const leaves = /^q\[\d+\]\.g\.#me\.p = :by/;
const claims = /h\.#me\.p = :by/;
const handsOver = /q\[0\]\.u > :earlier/;

/** The differences of a row from most others. */
interface Otherwise {
  /** The outcome without the loss, if it has another name. */
  readonly calm?: string;
  /** A repeated renewal extends the lease again. Either the form's condition still holds, or a new decision is written once more. */
  readonly extends?: "each time" | "once more";
}

type Row<S extends Fixture> = readonly [
  operation: string,
  before: (fixture: S) => Promise<unknown>,
  act: (fixture: S) => Promise<AnswerTo<Command>>,
  write: RegExp,
  outcome: string,
  otherwise?: Otherwise,
];

/** A row on any type of fixture. */
export interface AnyRow extends Otherwise {
  readonly operation: string;
  /** The condition of the write whose response is lost. */
  readonly write: RegExp;
  readonly outcome: string;
  /** Opens a key of its own for the row. */
  open(store: LockStore): { readonly key: Fixture; before(): Promise<unknown>; act(): Promise<AnswerTo<Command>> };
}

/** Rows on fixtures that `make` constructs. */
function rowsOn<S extends Fixture>(make: new (store: LockStore) => S, rows: readonly Row<S>[]): readonly AnyRow[] {
  return rows.map(([operation, before, act, write, outcome, otherwise]) => ({
    ...{ operation, write, outcome, ...otherwise },
    open(store) {
      const key = new make(store);
      return { key, before: () => before(key), act: () => act(key) };
    },
  }));
}

const GRANTED = { calm: "granted" };
const READER = { mode: "shared" } as const;

const unused = () => Promise.resolve();
const held = (lock: Fixture): Promise<unknown> => lock.acquire(A, { leaseMs: 30_000 });
const used = async (lock: Fixture): Promise<unknown> => (await lock.acquire(A), await lock.release(A), lock.at(1));
const at = (ms: number) => async (lock: Fixture): Promise<unknown> => (await lock.acquire(A), lock.at(ms)); // prettier-ignore
const read = (lock: Fixture): Promise<unknown> => lock.acquire(A, READER);
const readTwice = async (lock: Fixture): Promise<unknown> => (await read(lock), lock.acquire(B, READER));

const LOCK_ROWS = rowsOn<Fixture>(Fixture, [
  ["acquire a new key", unused, (lock) => lock.acquire(A), fast, "replayed", GRANTED],
  ["acquire a used key", used, (lock) => lock.acquire(B), fast, "replayed", GRANTED],
  ["acquire in the same millisecond", used, (lock) => lock.at(0).acquire(B), decided, "replayed", GRANTED],
  ["take over", at(LEASE_MS + MARGIN_MS), (lock) => lock.acquire(B), decided, "replayed", GRANTED],
  ["renew as guessed", held, (lock) => lock.at(9).renew(A), fast, "renewed", { extends: "each time" }],
  ["renew as decided", at(9), (lock) => lock.renew(A, { leaseMs: 1_000 }), decided, "renewed", { extends: "once more" }],
  ["join a reader", read, (lock) => lock.acquire(B, READER), fast, "replayed", GRANTED],
  ["leave a reader", readTwice, (lock) => lock.release(A), fast, "released"],
  ["renew with a note", at(9), (lock) => lock.renew(A, { meta: { step: 2 } }), decided, "renewed", { extends: "once more" }],
  ["release", held, (lock) => lock.release(A), fast, "released"],
  ["release after expiry", at(LEASE_MS), (lock) => lock.release(A), decided, "expired"],
  ["cancel on no item", unused, (lock) => lock.release(A), decided, "never"],
  ["cancel on an item", used, (lock) => lock.release(C), decided, "never"],
  ["cancel on a held key", held, (lock) => lock.release(C), decided, "never"],
  ["transfer", held, (lock) => lock.transfer(A, B), decided, "replayed", { calm: "transferred" }],
  [
    "first to ask for a hold that was handed over",
    async (lock) => (await held(lock), await lock.transfer(A, B)),
    (lock) => lock.acquire(B, { by: "Q" }),
    decided,
    "replayed",
  ],
  ["break and let drain", held, (lock) => lock.breakHold(), decided, "breaking"],
  ["break in 5 s", held, (lock) => lock.breakHold(undefined, 5_000), decided, "breaking"],
  ["break now", held, (lock) => lock.breakHold(undefined, 0), decided, "broken"],
]);

/** With a lease of the default length, which the guess of a heartbeat assumes. */
const runs = (run: RunScene): Promise<unknown> => run.start(A, { leaseMs: 30_000 });
const failed = async (run: RunScene): Promise<unknown> => (await run.start(A), await run.complete(A, "retry"), run.at(1));
const runsAt = (ms: number) => async (run: RunScene): Promise<unknown> => (await run.start(A), run.at(ms)); // prettier-ignore
const silent = runsAt(LEASE_MS + MARGIN_MS);
const RESULT = { payload: small('"paid"') };
const RECORDED = { calm: "recorded" };

const RUN_ROWS = rowsOn(RunScene, [
  ["start a new run", unused, (run) => run.start(A), fast, "replayed", GRANTED],
  ["start again after a failure", failed, (run) => run.start(B), decided, "replayed", GRANTED],
  ["start as a takeover", silent, (run) => run.start(B), decided, "replayed", GRANTED],
  ["a heartbeat", runs, (run) => run.at(9).renew(A), fast, "renewed", { extends: "each time" }],
  ["a heartbeat with a checkpoint", runs, (run) => run.at(9).save(A, small("2")), fast, "renewed", { extends: "each time" }],
  ["a heartbeat as decided", runsAt(9), (run) => run.save(A, small("2")), decided, "renewed", { extends: "once more" }],
  ["record that it succeeded", runs, (run) => run.at(9).complete(A, "succeeded", RESULT), fast, "replayed", RECORDED],
  ["record that it failed", runs, (run) => run.at(9).complete(A, "failed", RESULT), fast, "replayed", RECORDED],
  ["record that it may be tried again", runs, (run) => run.at(9).complete(A, "retry", RESULT), fast, "replayed", RECORDED],
  ["record that its result is left out", runs, (run) => run.complete(A, "succeeded", { omitted: true }), fast, "replayed", RECORDED],
  ["record past its lease", silent, (run) => run.complete(A, "succeeded", RESULT), decided, "replayed", RECORDED],
  ["give up a run", runs, (run) => run.release(A), decided, "released"],
  ["give up a run past its lease", runsAt(LEASE_MS), (run) => run.release(A), decided, "expired"],
  ["give up a run that never came", unused, (run) => run.release(A), decided, "never"],
  ["give up while another runs", runs, (run) => run.release(C), decided, "never"],
  ["reset", failed, (run) => run.reset(), decided, "reset"],
  ["reset what fell silent", silent, (run) => run.reset(), decided, "reset"],
]);

/** A holds, and these wait. The process has seen the record. */
export const line =
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
const pastTheDead = async (lock: QueueScene): Promise<unknown> => (await line(B, C)(lock), lock.at(9_000).queue(C));
const LAPSED_MS = 4 + DEFAULTS.offerWindowMs;
const DEAD_MS = DEFAULTS.waiterTtlMs + 2;

const QUEUE_ROWS = rowsOn<QueueScene>(QueueScene, [
  ["enqueue behind others", line(B), (lock) => lock.queue(C), ENQUEUES, "waiting"],
  ["enqueue ahead of others", line(B), (lock) => lock.queue(C, { priority: 5 }), decided, "waiting"],
  ["hand over", line(B, C), (lock) => lock.release(A), handsOver, "released"],
  ["hand over past the dead", pastTheDead, (lock) => lock.at(DEAD_MS).release(A), decided, "expired"],
  ["claim", turn(B, C), (lock) => lock.queue(B), claims, "replayed", GRANTED],
  ["claim in the millisecond of the last grant", turn(B), (lock) => lock.at(0).queue(B), claims, "replayed", GRANTED],
  ["take a turn that lapsed", turn(B, C), (lock) => lock.at(LAPSED_MS).queue(C), decided, "replayed", GRANTED],
  ["leave the queue", line(B, C, D), (lock) => lock.release(C), leaves, "never"],
  ["leave one's turn to the next", turn(B, C), (lock) => lock.release(B), decided, "never"],
]);

export const ROWS: readonly AnyRow[] = [...LOCK_ROWS, ...RUN_ROWS, ...QUEUE_ROWS];
