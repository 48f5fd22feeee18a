/** Operations on locks whose responses are lost. */
import { decided, fast, rowsOn } from "./lost-rows.js";
import { A, B, C, LEASE_MS, MARGIN_MS, Fixture } from "../fixture.js";

const held = (lock: Fixture): Promise<unknown> => lock.acquire(A, { leaseMs: 30_000 });
const used = async (lock: Fixture): Promise<unknown> => (await lock.acquire(A), await lock.release(A), lock.at(1));
const at = (ms: number) => async (lock: Fixture): Promise<unknown> => (await lock.acquire(A), lock.at(ms)); // prettier-ignore

/** Operations on locks. */
export const ROWS = rowsOn<Fixture>(Fixture, [
  { operation: "acquire a new key", act: (lock) => lock.acquire(A), write: fast, outcome: "replayed", otherwise: "granted" },
  {
    operation: "acquire a used key",
    before: used,
    act: (lock) => lock.acquire(B),
    write: fast,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "acquire in the same millisecond",
    before: async (lock) => (await used(lock), lock.at(0)),
    act: (lock) => lock.acquire(B),
    write: decided,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "take over",
    before: at(LEASE_MS + MARGIN_MS),
    act: (lock) => lock.acquire(B),
    write: decided,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "renew as guessed",
    before: held,
    act: (lock) => lock.at(9).renew(A),
    write: fast,
    outcome: "renewed",
    extends: "each time",
  },
  {
    operation: "renew as decided",
    before: at(9),
    act: (lock) => lock.renew(A, { leaseMs: 1_000 }),
    write: decided,
    outcome: "renewed",
    extends: "once more",
  },
  {
    operation: "join a reader",
    before: (lock) => lock.acquire(A, { mode: "shared" }),
    act: (lock) => lock.acquire(B, { mode: "shared" }),
    write: fast,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "leave a reader",
    before: async (lock) => (await lock.acquire(A, { mode: "shared" }), lock.acquire(B, { mode: "shared" })),
    act: (lock) => lock.release(A),
    write: fast,
    outcome: "released",
  },
  {
    operation: "renew with a note",
    before: at(9),
    act: (lock) => lock.renew(A, { meta: { step: 2 } }),
    write: decided,
    outcome: "renewed",
    extends: "once more",
  },
  { operation: "release", before: held, act: (lock) => lock.release(A), write: fast, outcome: "released" },
  { operation: "release after expiry", before: at(LEASE_MS), act: (lock) => lock.release(A), write: decided, outcome: "expired" },
  { operation: "cancel on no item", act: (lock) => lock.release(A), write: decided, outcome: "never" },
  { operation: "cancel on an item", before: used, act: (lock) => lock.release(C), write: decided, outcome: "never" },
  { operation: "cancel on a held key", before: held, act: (lock) => lock.release(C), write: decided, outcome: "never" },
  {
    operation: "transfer",
    before: held,
    act: (lock) => lock.transfer(A, B),
    write: decided,
    outcome: "replayed",
    otherwise: "transferred",
  },
  {
    operation: "first to ask for a hold that was handed over",
    before: async (lock) => (await held(lock), await lock.transfer(A, B)),
    act: (lock) => lock.acquire(B, { by: "Q" }),
    write: decided,
    outcome: "replayed",
  },
  { operation: "break and let drain", before: held, act: (lock) => lock.breakHold(), write: decided, outcome: "breaking" },
  { operation: "break in 5 s", before: held, act: (lock) => lock.breakHold(undefined, 5_000), write: decided, outcome: "breaking" },
  { operation: "break now", before: held, act: (lock) => lock.breakHold(undefined, 0), write: decided, outcome: "broken" },
]);
