/**
 * Every state of a key × every command, with the outcome that each store must produce. `A` is the lease that the states
 * are about; `C` is new. A cell has the outcome, `+` if the record changed, and the holder afterwards.
 */
import { type Fixture, A, B, C, D, leaseId, leaseIn, LEASE_MS, MARGIN_MS } from "../fixture.js";
import { type Column, playRow, rowOf } from "./state-table.js";

type Step = (lock: Fixture, tokenOfA: number) => Promise<unknown>;

/** The commands in every state: the columns of the table. */
const COMMANDS: readonly Column<Fixture, number>[] = [
  ["acquire A", (lock) => lock.acquire(A)],
  ["acquire C", (lock) => lock.acquire(C)],
  ["renew A", (lock) => lock.renew(A)],
  ["release A", (lock) => lock.release(A)],
  ["transfer A to D", (lock) => lock.transfer(A, D)],
  ["break A", (lock, token) => lock.breakHold(token)],
  ["break A now", (lock, token) => lock.breakHold(token, 0)],
];

/** The drain time of a break, if it has one. */
const DRAIN_MS = 5_000;

const wait = (ms: number, aheadMs?: number): Step => async (lock) => void lock.at(ms, aheadMs); // prettier-ignore
const breakA = (drainMs?: number): Step => (lock, token) => lock.breakHold(token, drainMs); // prettier-ignore
const releaseA: Step = (lock) => lock.release(A);
const acquireB: Step = (lock) => lock.acquire(B);
/** Ends eight other leases. After that, A is known only through the low watermark. */
const eightEnd: Step = async (lock) => {
  for (let order = 0; order < 8; order++) await lock.release(leaseId(1000 + order));
};
const EXPIRED = wait(LEASE_MS);
const TAKEABLE = wait(LEASE_MS + MARGIN_MS);

interface State {
  readonly state: string;
  /** True if A was granted the key first. */
  readonly granted: boolean;
  readonly steps: readonly Step[];
  readonly cells: string;
}

const granted = (state: string, steps: readonly Step[], cells: string): State => ({ state, granted: true, steps, cells });
const free = (state: string, steps: readonly Step[], cells: string): State => ({ state, granted: false, steps, cells });

// prettier-ignore
/** The table. Columns as in COMMANDS. */
export const STATES: readonly State[] = [
  free   ("never used",                      [],
    "granted +A   | granted +C | lease-lost: never       | never +      | lease-lost: never       | not-found   | not-found"),
  free   ("cancelled before it came",        [releaseA],
    "lease-over   | granted +C | lease-lost: never       | never        | lease-lost: never       | not-found   | not-found"),
  granted("held",                            [],
    "replayed A   | locked A   | renewed +A              | released +   | transferred +D          | breaking +A | broken +"),
  granted("past its end by the later clock", [wait(LEASE_MS - 1, 5_000)],
    "replayed A   | locked A   | renewed +A              | released +   | transferred +D          | breaking +A | broken +"),
  granted("past its end by both clocks",     [EXPIRED],
    "lease-over A | locked A   | lease-lost: expired A   | expired +    | lease-lost: expired A   | breaking +A | broken +"),
  granted("past its margin by the later",    [wait(LEASE_MS + MARGIN_MS - 1, 9_000)],
    "lease-over A | locked A   | lease-lost: expired A   | expired +    | lease-lost: expired A   | breaking +A | broken +"),
  granted("past its margin by both",         [TAKEABLE],
    "lease-over A | granted +C | lease-lost: expired A   | expired +    | lease-lost: expired A   | broken +    | broken +"),
  granted("released",                        [releaseA],
    "lease-over   | granted +C | lease-lost: released    | released     | lease-lost: released    | not-found   | not-found"),
  granted("released, B holds",               [releaseA, acquireB],
    "lease-over B | locked B   | lease-lost: released B  | released B   | lease-lost: released B  | other-hold B| other-hold B"),
  granted("ended when it had run out",       [EXPIRED, releaseA],
    "lease-over   | granted +C | lease-lost: expired     | expired      | lease-lost: expired     | not-found   | not-found"),
  granted("taken over by B",                 [TAKEABLE, acquireB],
    "lease-over B | locked B   | lease-lost: taken B     | lost B       | lease-lost: taken B     | other-hold B| other-hold B"),
  granted("taken over by B, who is gone",    [TAKEABLE, acquireB, (lock) => lock.release(B)],
    "lease-over   | granted +C | lease-lost: taken       | lost         | lease-lost: taken       | other-hold  | other-hold"),
  granted("breaking",                        [breakA()],
    "replayed A   | locked A   | lease-lost: broken A    | released +   | lease-lost: broken A    | breaking A  | broken +"),
  granted("breaking, past its end",          [breakA(), EXPIRED],
    "lease-over A | locked A   | lease-lost: broken A    | expired +    | lease-lost: broken A    | breaking A  | broken +"),
  granted("breaking, past its margin",       [breakA(), TAKEABLE],
    "lease-over A | granted +C | lease-lost: broken A    | expired +    | lease-lost: broken A    | broken +    | broken +"),
  granted("breaking, then released",         [breakA(), releaseA],
    "lease-over   | granted +C | lease-lost: released    | released     | lease-lost: released    | broken      | broken"),
  granted("broken in 5 s",                   [breakA(DRAIN_MS)],
    "replayed A   | locked A   | lease-lost: broken A    | released +   | lease-lost: broken A    | breaking A  | broken +"),
  granted("broken since 5 s are over",       [breakA(DRAIN_MS), wait(DRAIN_MS)],
    "lease-over A | granted +C | lease-lost: broken A    | lost +       | lease-lost: broken A    | broken +    | broken +"),
  granted("broken now",                      [breakA(0)],
    "lease-over   | granted +C | lease-lost: broken      | lost         | lease-lost: broken      | broken      | broken"),
  granted("broken, B holds",                 [breakA(0), acquireB],
    "lease-over B | locked B   | lease-lost: broken B    | lost B       | lease-lost: broken B    | broken B    | broken B"),
  granted("handed to B",                     [(lock) => lock.transfer(A, B)],
    "lease-over B | locked B   | lease-lost: transferred B | transferred B | lease-lost: transferred B | other-hold B | other-hold B"),
  granted("handed to D",                     [(lock) => lock.transfer(A, D)],
    "lease-over D | locked D   | lease-lost: transferred D | transferred D | replayed D            | other-hold D| other-hold D"),
  granted("released, known by the floor",    [releaseA, eightEnd],
    "lease-over   | granted +C | lease-lost: taken       | unknown      | lease-lost: taken       | not-found   | not-found"),
];

/** Sends every command twice to its own key in this state. */
export function play({ granted: first, steps }: State, sceneOf: () => Fixture): ReturnType<typeof playRow> {
  return playRow({
    columns: COMMANDS,
    sceneOf,
    async prepare(lock) {
      const token = first ? leaseIn(await lock.acquire(A)).fencingToken : 1;
      for (const step of steps) await step(lock, token);
      return token;
    },
  });
}

/** The row as the table expects it. */
export function expected({ cells }: State): ReturnType<typeof rowOf> {
  return rowOf(COMMANDS, cells);
}
