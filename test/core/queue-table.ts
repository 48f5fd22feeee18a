/** Compatibility, as docs/who-meets-whom.md shows it: every state of a key × caller × kind of request, each cell computed by the core. */
import { outcomeOf } from "../store/fixture.js";
import { ID, IN_S, permits, READER } from "./kinds-key.js";
import { type QueueOptions, QueueKey } from "./queue-key.js";

const KINDS = { exclusive: {}, shared: READER, "a permit of 3": permits(1) } as const;
type Kind = keyof typeof KINDS;

/** A's options for the kind, in the scope S. The request hash depends on the kind. */
const asA = (kind: Kind): QueueOptions => ({ ...KINDS[kind], ...IN_S, requestHash: kind });

interface Found {
  readonly state: string;
  /** Brings the key into the state. The state is about A, which holds, waits or is offered the key. */
  readonly make: (key: QueueKey) => unknown;
}

const holds = (letter: string, options: QueueOptions) => (key: QueueKey) => key.acquire(letter, options);
const waits = (letter: string, options: QueueOptions) => (key: QueueKey) => key.ask(letter, options);
const releases = (letter: string) => (key: QueueKey) => key.release(letter);
const inTurn =
  (...steps: readonly ((key: QueueKey) => unknown)[]) =>
  (key: QueueKey) =>
    steps.forEach((step) => step(key));

// prettier-ignore
const STATES: readonly Found[] = [
  { state: "free", make: () => undefined },
  { state: "exclusive", make: holds("A", asA("exclusive")) },
  { state: "shared", make: holds("A", asA("shared")) },
  { state: "permits: 1 of 3 is out", make: holds("A", asA("a permit of 3")) },
  { state: "permits: all 3 are out", make: inTurn(holds("A", asA("a permit of 3")), holds("B", permits(2))) },
  { state: "nested: in an exclusive lease", make: inTurn(holds("B", { ...IN_S }), holds("A", asA("exclusive"))) },
  { state: "nested: in a shared lease", make: inTurn(holds("B", { ...IN_S, ...READER }), holds("A", asA("shared"))) },
  { state: "offered: exclusive", make: inTurn(holds("B", {}), waits("A", asA("exclusive")), releases("B")) },
  { state: "offered: shared", make: inTurn(holds("B", {}), waits("A", asA("shared")), releases("B")) },
  { state: "offered: a permit of 3", make: inTurn(holds("B", permits(3)), waits("A", asA("a permit of 3")), releases("B")) },
  { state: "waiting: a writer for a writer", make: inTurn(holds("B", {}), waits("A", asA("exclusive"))) },
  { state: "waiting: a writer for readers", make: inTurn(holds("B", READER), waits("A", asA("exclusive"))) },
  { state: "waiting: a reader for a writer", make: inTurn(holds("B", {}), waits("A", asA("shared"))) },
  { state: "waiting: for a permit, all 3 are out", make: inTurn(holds("B", permits(3)), waits("A", asA("a permit of 3"))) },
  { state: "waiting: for a permit, behind one who wants 3", make: inTurn(holds("F", permits(1)), waits("B", permits(3)), waits("A", asA("a permit of 3"))) },
  {
    state: "waiting: a writer whose scope holds by now",
    make: inTurn(holds("F", {}), waits("A", asA("exclusive")), waits("B", { ...IN_S, priority: 1 }), releases("F"), waits("B", { ...IN_S, priority: 1 })),
  },
];

/** The callers: A's own id, a new id in A's scope, a new id without a scope. */
const ASKING: Readonly<Record<string, (kind: Kind) => readonly [letter: string, options: QueueOptions]>> = {
  "the same lease": (kind) => ["A", asA(kind)],
  "the same scope": (kind) => ["C", { ...KINDS[kind], ...IN_S }],
  "any other": (kind) => ["E", KINDS[kind]],
};

const HEAD = ["the key is", "who asks", ...Object.keys(KINDS)];

/** The table, as Markdown. */
export function whoMeetsWhom(): string {
  const rows = STATES.flatMap((found) =>
    Object.entries(ASKING).map(([who, ask], line) => [
      line === 0 ? `**${found.state}**` : "",
      who,
      ...(Object.keys(KINDS) as Kind[]).map((kind) => cell(found, ask(kind))),
    ]),
  );
  const widths = HEAD.map((head, column) => Math.max(head.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string => `| ${cells.map((text, column) => text.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [line(HEAD), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...rows.map(line)].join("\n");
}

/** The outcome for a caller that doesn't wait, and for one that does. */
function cell(found: Found, [letter, options]: readonly [string, QueueOptions]): string {
  const atOnce = meets(found, letter, options);
  const waiting = meets(found, letter, { ...options, wait: true });
  return atOnce === waiting ? atOnce : `${atOnce}; ${waiting}`;
}

function meets({ make }: Found, letter: string, options: QueueOptions): string {
  const key = new QueueKey();
  make(key);
  key.at(1);
  const { holds: held = {}, offers = [], waiters = [] } = key.record ?? {};
  const isAsked = (all: readonly { readonly leaseId: string }[]): boolean => all.some(({ leaseId }) => leaseId === ID(letter));
  const outcome = outcomeOf(key.acquire(letter, options));
  if (outcome === "replayed") return "the same again";
  if (outcome === "waiting") return isAsked(waiters) ? "waits as before" : "waits";
  if (outcome !== "granted") return outcome;
  if (isAsked(offers)) return "claims it";
  if (Object.values(held).some(({ fencingToken }) => fencingToken === key.tokenOf(letter))) return "nested";
  return Object.keys(held).length + offers.length > 0 ? "joins" : "granted";
}
