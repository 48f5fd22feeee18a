/**
 * Every move of the queue: the steps to the state, the request, and the outcome. The outcome is the answer, the holders
 * (`Ax`), the offers (`Bx?`) and the waiters (`Cx…`), and the log events. Times are ms since the start.
 */
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { type outcomeOf, LEASE_MS, MARGIN_MS } from "../store/fixture.js";
import { IN_S, permits, READER } from "./kinds-key.js";
import type { QueueKey } from "./queue-key.js";

type Step = (key: QueueKey) => unknown;

/** A move: `steps` and then `ask` lead to `is`. */
export interface Move {
  readonly when: string;
  readonly steps: readonly Step[];
  readonly ask: (key: QueueKey) => Parameters<typeof outcomeOf>[0];
  readonly is: string;
}

const move = (when: string, steps: readonly Step[], ask: Move["ask"], is: string): Move => ({ when, steps, ask, is });

const WINDOW_MS = DEFAULTS.offerWindowMs;
const TTL_MS = DEFAULTS.waiterTtlMs;
const PRIOR = { priority: 1 } as const;
const LONG = { leaseMs: 10 * LEASE_MS } as const;

const at = (ms: number, aheadMs?: number): Step => (key) => key.at(ms, aheadMs); // prettier-ignore
const holds = (letters: string, options: object = {}): Step => (key) => Array.from(letters).forEach((letter) => key.acquire(letter, options)); // prettier-ignore
const waits = (letters: string, options: object = {}): Step => (key) => Array.from(letters).forEach((letter) => key.ask(letter, options)); // prettier-ignore
const goes = (letter: string): Step => (key) => key.release(letter); // prettier-ignore
/** A holds and these wait. A releases at 1000, and the first waiter is offered the key. */
const offeredTo = (letters: string): readonly Step[] => [holds("A"), waits(letters), at(1000), goes("A")];
/** The time at which an offer of {@link offeredTo} lapses. */
const LAPSED_MS = 1000 + WINDOW_MS;

// prettier-ignore
/** A client arrives. */
export const ARRIVING: readonly Move[] = [
  move("the key is free", [], (key) => key.ask("A"), "granted: Ax · A granted"),
  move("somebody holds", [holds("A")], (key) => key.ask("B"), "waiting: Ax Bx… · B queued"),
  move("somebody holds, and it doesn't wait", [holds("A")], (key) => key.acquire("B"), "locked: Ax ·"),
  move("others wait", [holds("A"), waits("B")], (key) => key.ask("C"), "waiting: Ax Bx… Cx… · C queued"),
  move("others wait, and it has priority", [holds("A"), waits("BC")], (key) => key.ask("D", PRIOR), "waiting: Ax Dx… Bx… Cx… · D queued"),
  move("others wait who have more priority, as much and less", [holds("A"), waits("B"), waits("C", PRIOR), waits("D", { priority: 2 })], (key) => key.ask("E", PRIOR), "waiting: Ax Dx… Cx… Ex… Bx… · E queued"),
  move("it is another's turn", offeredTo("B"), (key) => key.ask("C"), "waiting: Bx? Cx… · C queued"),
  move("it is another's turn, and it doesn't wait", offeredTo("B"), (key) => key.acquire("C"), "locked: Bx? ·"),
  move("it is another's turn, and it has priority", offeredTo("B"), (key) => key.ask("C", PRIOR), "waiting: Bx? Cx… · C queued"),
  move("a lease may be taken over and nobody waits", [holds("A"), at(LEASE_MS + MARGIN_MS)], (key) => key.ask("B"), "granted: Bx · A taken, B granted"),
  move("a lease may be taken over and another waits", [holds("A"), waits("B"), at(LEASE_MS + MARGIN_MS)], (key) => key.ask("C"), "waiting: Bx? Cx… · A taken, B offered, C queued"),
  move("a lease may be taken over, another waits, and it doesn't", [holds("A"), waits("B"), at(LEASE_MS + MARGIN_MS)], (key) => key.acquire("C"), "locked: Bx? · A taken, B offered"),
  move("a lease may be taken over, and it has priority over who waits", [holds("A"), waits("B"), at(LEASE_MS + MARGIN_MS)], (key) => key.acquire("C", PRIOR), "granted: Cx Bx… · A taken, C granted"),
  move("a lease may be taken over and who waits was not heard of", [holds("A", LONG), waits("B"), at(10 * LEASE_MS + MARGIN_MS * 2)], (key) => key.acquire("C"), "granted: Cx · A taken, B skipped, C granted"),
  move("an offer lapsed and nobody waits", [...offeredTo("B"), at(LAPSED_MS)], (key) => key.acquire("C"), "granted: Cx · B skipped, C granted"),
  move("an offer lapsed by the later clock alone", [...offeredTo("B"), at(LAPSED_MS - 1, 9_000)], (key) => key.ask("C"), "waiting: Bx? Cx… · C queued"),
  move("an offer lapsed, and who waits was not heard of since it was made", [...offeredTo("BC"), at(LAPSED_MS)], (key) => key.ask("D"), "granted: Dx · B skipped, C skipped, D granted"),
  move("an offer lapsed, and who waits was heard of since it was made", [...offeredTo("BCD"), at(1000 + LIMITS.keepAliveAfterMs), waits("D"), at(LAPSED_MS)], (key) => key.ask("E"), "waiting: Dx? Ex… · B skipped, C skipped, D offered, E queued"),
  move("an offer lapsed, and who waits was heard of in the very instant in which it was made", [...offeredTo("B"), waits("C"), at(LAPSED_MS)], (key) => key.ask("D"), "waiting: Cx? Dx… · B skipped, C offered, D queued"),
  move("a reader finds readers and a writer who waits", [holds("A", READER), waits("B")], (key) => key.ask("C", READER), "waiting: As Bx… Cs… · C queued"),
  move("... and it doesn't wait", [holds("A", READER), waits("B")], (key) => key.acquire("C", READER), "locked: As Bx… ·"),
  move("a reader finds readers, and a reader whose turn it is", [holds("A"), waits("B", READER), goes("A")], (key) => key.ask("C", READER), "granted: Cs Bs? · C granted"),
  move("a reader finds one who asks to become the writer", [holds("AB", READER), (key) => key.change("A", "exclusive")], (key) => key.ask("C", READER), "waiting: As^ Bs Cs… · C queued"),
  move("there are permits left", [holds("A", permits(1))], (key) => key.ask("B", permits(2)), "granted: A1/3 B2/3 · B granted"),
  move("there are too few permits left", [holds("A", permits(2))], (key) => key.ask("B", permits(2)), "waiting: A2/3 B2/3… · B queued"),
  move("there are enough permits, but who wants more waits", [holds("A", permits(2)), waits("B", permits(2))], (key) => key.ask("C", permits(1)), "waiting: A2/3 B2/3… C1/3… · C queued"),
  move("... and it has priority", [holds("A", permits(2)), waits("B", permits(2))], (key) => key.ask("C", { ...permits(1), ...PRIOR }), "granted: A2/3 C1/3 B2/3… · C granted"),
  move("a permit is somebody's turn", [holds("A", permits(3)), waits("B", permits(2)), goes("A")], (key) => key.ask("C", permits(2)), "waiting: B2/3? C2/3… · C queued"),
  move("... and there are enough beside it", [holds("A", permits(3)), waits("B", permits(2)), goes("A")], (key) => key.ask("C", permits(1)), "granted: C1/3 B2/3? · C granted"),
  move("others hold with another limit", [holds("A")], (key) => key.ask("B", permits(1)), "limit-mismatch: Ax ·"),
  move("it is somebody's turn with another limit", offeredTo("B"), (key) => key.ask("C", permits(1)), "limit-mismatch: Bx? ·"),
  move("who waits has another limit", [holds("A"), waits("B"), at(LEASE_MS + MARGIN_MS)], (key) => key.ask("C", permits(1)), "limit-mismatch: Bx? · A taken, B offered"),
  move("who waited with another limit was not heard of", [holds("A"), waits("B"), at(TTL_MS)], (key) => key.ask("C", permits(1)), "granted: C1/3 · A taken, B skipped, C granted"),
  move("its scope holds", [holds("A", IN_S), waits("B")], (key) => key.ask("C", IN_S), "granted: Ax=Cx Bx… · C granted"),
  move("its scope holds shared and a writer waits", [holds("A", { ...IN_S, ...READER }), waits("B")], (key) => key.ask("C", { ...IN_S, ...READER }), "granted: As=Cs Bx… · C granted"),
  move("its scope holds shared and it wants to write", [holds("A", { ...IN_S, ...READER })], (key) => key.ask("C", IN_S), "locked: As ·"),
  move("its scope waits", [holds("A"), waits("B", IN_S)], (key) => key.ask("C", IN_S), "waiting: Ax Bx… Cx… · C queued"),
  move("it is its scope's turn", [holds("A"), waits("B", IN_S), goes("A")], (key) => key.ask("C", IN_S), "waiting: Bx? Cx… · C queued"),
];

// prettier-ignore
/** A client in the queue asks again. */
export const ASKING: readonly Move[] = [
  move("it waits", [holds("A"), waits("B"), at(1)], (key) => key.ask("B"), "waiting: Ax Bx… ·"),
  move("it waits, and asks for no place", [holds("A"), waits("B"), at(1)], (key) => key.acquire("B"), "waiting: Ax Bx… ·"),
  move("it waits, and names another priority with the same parameters", [holds("A"), waits("BC"), at(1)], (key) => key.ask("C", PRIOR), "waiting: Ax Bx… Cx… ·"),
  move("it is its turn", [...offeredTo("B"), at(1001)], (key) => key.ask("B"), "granted: Bx · B granted"),
  move("it is its turn, and it asks for no place", [...offeredTo("B"), at(1001)], (key) => key.acquire("B"), "granted: Bx · B granted"),
  move("it is its turn, while others wait", [...offeredTo("BC"), at(1001)], (key) => key.ask("B"), "granted: Bx Cx… · B granted"),
  move("its turn is over by the clocks, and nobody noticed", [...offeredTo("BC"), at(LAPSED_MS + 60_000)], (key) => key.ask("B"), "granted: Bx Cx… · B granted"),
  move("it claimed already", [...offeredTo("B"), waits("B"), at(1001)], (key) => key.ask("B"), "replayed: Bx · B replayed"),
  move("it was skipped", [...offeredTo("BC"), at(LAPSED_MS), waits("C")], (key) => key.ask("B"), "waiting: Cx Bx… · B queued"),
  move("it left", [holds("A"), waits("B"), goes("B")], (key) => key.ask("B"), "lease-over: Ax ·"),
  move("it left its turn", [...offeredTo("B"), goes("B")], (key) => key.ask("B"), "lease-over:  ·"),
  move("the lease ahead of it may be taken over", [holds("A"), waits("B"), at(LEASE_MS + MARGIN_MS)], (key) => key.ask("B"), "granted: Bx · A taken, B granted"),
  move("... and another is first", [holds("A"), waits("BC"), at(LEASE_MS + MARGIN_MS)], (key) => key.ask("C"), "waiting: Bx? Cx… · A taken, B offered"),
  move("... who was not heard of", [holds("A", LONG), waits("B"), at(TTL_MS - 1), waits("C"), at(LEASE_MS * 10 + 1201)], (key) => key.ask("C"), "granted: Cx · A taken, B skipped, C granted"),
  move("the offer ahead of it lapsed", [...offeredTo("BC"), at(LAPSED_MS)], (key) => key.ask("C"), "granted: Cx · B skipped, C granted"),
  move("... with one between them who was not heard of", [...offeredTo("BCD"), at(LAPSED_MS)], (key) => key.ask("D"), "granted: Dx · B skipped, C skipped, D granted"),
  move("... with one between them who was heard of", [...offeredTo("BCD"), at(1000), waits("C"), at(1000 + LIMITS.keepAliveAfterMs), waits("C"), at(LAPSED_MS)], (key) => key.ask("D"), "waiting: Cx? Dx… · B skipped, C offered"),
  move("... and who is behind was not heard of either", [...offeredTo("BCD"), at(LAPSED_MS)], (key) => key.ask("C"), "granted: Cx Dx… · B skipped, C granted"),
  move("its place has lapsed, and nobody noticed", [holds("A", LONG), waits("B"), at(TTL_MS + 1)], (key) => key.ask("B"), "waiting: Ax Bx… ·"),
  move("its scope has come to hold", [holds("A", { ...READER }), waits("B", { ...IN_S }), waits("C", { ...IN_S, ...PRIOR }), goes("A"), waits("C", { ...IN_S, ...PRIOR })], (key) => key.ask("B", IN_S), "granted: Bx=Cx · B granted"),
];

// prettier-ignore
/** A client leaves, or makes room. */
export const GOING: readonly Move[] = [
  move("the holder releases", [holds("A"), waits("BC")], (key) => key.release("A"), "released: Bx? Cx… · A released, B offered"),
  move("the holder releases, and nobody waits", [holds("A")], (key) => key.release("A"), "released:  · A released"),
  move("the holder releases late", [holds("A"), waits("B"), at(LEASE_MS)], (key) => key.release("A"), "expired: Bx? · A expired, B offered"),
  move("the holder releases, and the first was not heard of", [holds("A", LONG), waits("B"), at(TTL_MS - 1), waits("C"), at(TTL_MS)], (key) => key.release("A"), "released: Cx? · A released, B skipped, C offered"),
  move("... by the later clock alone", [holds("A", LONG), waits("BC"), at(TTL_MS - 1, 9_000)], (key) => key.release("A"), "released: Bx? Cx… · A released, B offered"),
  move("the holder releases, and nobody who waits was heard of", [holds("A", LONG), waits("BC"), at(TTL_MS + 60_000)], (key) => key.release("A"), "released:  · A released, B skipped, C skipped"),
  move("the holder releases, and priority waits", [holds("A"), waits("B"), waits("C", PRIOR)], (key) => key.release("A"), "released: Cx? Bx… · A released, C offered"),
  move("the holder releases again", [...offeredTo("BC")], (key) => key.release("A"), "released: Bx? Cx… · A released"),
  move("the writer releases, and readers wait", [holds("A"), waits("BC", READER), waits("D"), waits("E", READER)], (key) => key.release("A"), "released: Bs? Cs? Dx… Es… · A released, B offered, C offered"),
  move("a reader of several releases, and a writer waits", [holds("AB", READER), waits("C")], (key) => key.release("A"), "released: Bs Cx… · A released"),
  move("the last reader releases, and a writer waits", [holds("A", READER), waits("B"), waits("C", READER)], (key) => key.release("A"), "released: Bx? Cs… · A released, B offered"),
  move("who asked to become the writer releases, and readers wait", [holds("AB", READER), (key) => key.change("A", "exclusive"), waits("C", READER)], (key) => key.release("A"), "released: Bs Cs… · A released"),
  move("another releases while one asks to become the writer", [holds("AB", READER), (key) => key.change("A", "exclusive"), waits("C", READER)], (key) => key.release("B"), "released: As^ Cs… · B released"),
  move("permits come back, enough for the first two", [holds("A", permits(3)), waits("B", permits(2)), waits("CD", permits(1))], (key) => key.release("A"), "released: B2/3? C1/3? D1/3… · A released, B offered, C offered"),
  move("permits come back, too few for the first", [holds("A", permits(1)), holds("B", permits(2)), waits("C", permits(3)), waits("D", permits(1))], (key) => key.release("B"), "released: A1/3 C3/3… D1/3… · B released"),
  move("permits come back while others hold", [holds("AB", permits(1)), waits("C", permits(2)), waits("D", permits(1))], (key) => key.release("A"), "released: B1/3 C2/3… D1/3… · A released"),
  move("the last permits come back, and nobody came for those before", [holds("AB", permits(1)), waits("C", permits(2)), waits("D", permits(1)), goes("A"), at(1)], (key) => key.release("B"), "released: C2/3? D1/3? · B released, C offered, D offered"),
  move("permits come back, and others are offered already", [holds("AB", permits(1)), waits("C", permits(2)), waits("D", permits(1)), goes("A"), at(LIMITS.keepAliveAfterMs), waits("D", permits(1))], (key) => key.release("B"), "released: C2/3? D1/3… · B released"),
  move("permits for two come back, and the second asks first", [holds("A", permits(1)), holds("B", permits(2)), waits("CD", permits(1)), goes("B"), at(1)], (key) => key.ask("D", permits(1)), "granted: A1/3 D1/3 C1/3… · D granted"),
  move("permits for the first come back, and the second asks for one of them", [holds("A", permits(1)), holds("B", permits(2)), waits("C", permits(2)), waits("D", permits(1)), goes("B"), at(1)], (key) => key.ask("D", permits(1)), "waiting: A1/3 C2/3… D1/3… ·"),
  move("permits come back for all that wait, and one more", [holds("A", permits(1)), holds("B", permits(2)), waits("C", permits(1)), goes("B"), at(1)], (key) => key.acquire("E", permits(1)), "granted: A1/3 E1/3 C1/3… · E granted"),
  move("permits come back for one who was not seen for a while, and another asks", [holds("A", permits(1)), holds("B", permits(2)), waits("C", permits(1)), at(LIMITS.keepAliveAfterMs), goes("B")], (key) => key.acquire("E", permits(1)), "granted: A1/3 E1/3 C1/3? · C offered, E granted"),
  move("one level of a scope releases", [holds("AB", IN_S), waits("C")], (key) => key.release("A"), "released: Bx Cx… · A released"),
  move("the last level of a scope releases", [holds("AB", IN_S), waits("C"), goes("A")], (key) => key.release("B"), "released: Cx? · B released, C offered"),
  move("one who waits leaves", [holds("A"), waits("BCD")], (key) => key.release("C"), "never: Ax Bx… Dx… · C cancelled"),
  move("one who waits leaves again", [holds("A"), waits("BCD"), goes("C")], (key) => key.release("C"), "never: Ax Bx… Dx… · C cancelled"),
  move("one who waits leaves when the lease may be taken over", [holds("A"), waits("BC"), at(LEASE_MS + MARGIN_MS)], (key) => key.release("B"), "never: Ax† Cx… · B cancelled"),
  move("whose turn it is leaves", offeredTo("BC"), (key) => key.release("B"), "never: Cx? · B cancelled, C offered"),
  move("whose turn it is leaves, and nobody waits", offeredTo("B"), (key) => key.release("B"), "never:  · B cancelled"),
  move("who wanted more permits than there are leaves", [holds("A", permits(2)), waits("B", permits(2)), waits("C", permits(1))], (key) => key.release("B"), "never: A2/3 C1/3… · B cancelled"),
  move("a writer who waited for readers leaves, and readers are behind it", [holds("A", READER), waits("B"), waits("CD", READER)], (key) => key.release("B"), "never: As Cs… Ds… · B cancelled"),
  move("one leaves, and an offer lapsed", [...offeredTo("BCDE"), at(1000 + LIMITS.keepAliveAfterMs), waits("DE"), at(LAPSED_MS)], (key) => key.release("E"), "never: Bx? Cx… Dx… · E cancelled"),
  move("an operator breaks the hold now", [holds("A"), waits("BC")], (key) => key.break("A", 0), "broken: Bx? Cx… · A broken, B offered"),
  move("an operator lets the hold drain", [holds("A"), waits("BC")], (key) => key.break("A"), "breaking: Ax! Bx… Cx… · A breaking"),
  move("an operator breaks both levels of a scope", [holds("AB", IN_S), waits("C")], (key) => key.break("A", 0), "broken: Cx? · A broken, B broken, C offered"),
  move("the drained hold may be taken over", [holds("A"), waits("B"), (key) => key.break("A", 1000), at(1000)], (key) => key.ask("B"), "granted: Bx · A broken, B granted"),
  move("the writer becomes a reader", [holds("A"), waits("BC", READER), waits("D"), at(1)], (key) => key.change("A", "shared"), "changed: As Bs? Cs? Dx… · A changed, B offered, C offered"),
  move("the writer becomes a reader, and a writer is first", [holds("A"), waits("B"), waits("C", READER), at(1)], (key) => key.change("A", "shared"), "changed: As Bx… Cs… · A changed"),
  move("the only reader becomes the writer before those who wait", [holds("A", READER), waits("B"), at(1)], (key) => key.change("A", "exclusive"), "changed: Ax Bx… · A changed"),
  move("a reader asks to become the writer, and it is a reader's turn", [holds("A"), waits("B", READER), at(1), (key) => key.change("A", "shared")], (key) => key.change("A", "exclusive"), "locked: As^ Bs? ·"),
  move("the holder hands over", [holds("A"), waits("B"), at(1)], (key) => key.transfer("A", "D"), "transferred: Dx Bx… · A transferred, D transferred"),
  move("the holder hands over to one who waits", [holds("A"), waits("B"), at(1)], (key) => key.transfer("A", "B"), "lease-reused: Ax Bx… ·"),
  move("a reader hands over to one whose turn it is", [holds("A"), waits("B", READER), at(1), (key) => key.change("A", "shared")], (key) => key.transfer("A", "B"), "lease-reused: As Bs? ·"),
  move("the holder renews", [holds("A"), waits("B"), at(1)], (key) => key.renew("A"), "renewed: Ax Bx… ·"),
  move("one who never came is cancelled", [holds("A"), waits("B"), at(1)], (key) => key.release("E"), "never: Ax Bx… · E cancelled"),
];
