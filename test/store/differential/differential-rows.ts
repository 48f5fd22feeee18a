/** The kinds of histories that are played through both stores: plain locks, all kinds of locks, runs, and a queue. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type History as KindHistory, kindHistories, permitHistories, readerHistories } from "./kind-histories.js";
import { type Mistake, type Row, row } from "./differential.js";
import { commandsOf, histories } from "./histories.js";
import { conditionCommandsOf, conditionHistories } from "./condition-histories.js";
import { kindsStorePair } from "./differential-kinds.js";
import { queueHistories, sleeperHistories, writerHistories } from "./queue-histories.js";
import { FORMS, queueStorePair } from "./differential-queue.js";
import { runCommandsOf, runHistories } from "./run-histories.js";
import { storePair } from "./differential-pair.js";
import { distort, mutate, mutateWhere } from "../mutate.js";

const without = <H>(predicate: string, played: Mistake<H>["histories"]): Mistake<H> => ({
  when: `without ${predicate}`,
  change: ({ client }) => mutate(client, predicate),
  histories: played,
});

const outcomes = (reached: Readonly<Record<string, readonly string[]>>): readonly string[] =>
  Object.entries(reached).flatMap(([command, all]) => all.map((outcome) => `${command}: ${outcome}`));

const lost = (...reasons: readonly string[]): readonly string[] => reasons.map((reason) => `lease-lost: ${reason}`);

const LOCKS = row({
  name: "the store with its forms",
  seed: 20_270_101,
  atOnce: 3,
  play: (table) => storePair(table, { kind: "locks", commandsOf }),
  parts: [{ histories, runs: 300 }],
  reached: outcomes({
    acquire: ["granted", "replayed", "locked", "forbidden", "lease-over", "lease-reused", "lease-id-time"],
    renew: ["renewed", "forbidden", ...lost("expired", "taken", "broken", "released", "transferred", "never")],
    release: ["released", "expired", "lost", "transferred", "never", "unknown", "forbidden"],
    transfer: ["transferred", "replayed", "forbidden", "lease-over", "lease-id-time", ...lost("expired", "broken")],
    break: ["breaking", "broken", "other-hold", "not-found"],
  }),
  searchRuns: 300,
  mistakes: [
    "size(h) = :zero",
    "(attribute_not_exists(f) OR f < :token)",
    "NOT (r0.i = :me)",
    "NOT (r7.i = :me)",
    "(attribute_not_exists(fl) OR fl < :me)",
    "h.#me.p = :principal",
    "h.#me.e > :earlier",
    "attribute_not_exists(h.#me.b)",
    "h.#me.g <= :margin",
    "x <= :ttl",
    "h.#me.l = :length",
    "fl <= r7.i",
    "x >= :touched",
  ].map((predicate) => without(predicate, histories)),
});

const RUNS = row({
  name: "the store with its forms about runs",
  seed: 20_270_101,
  atOnce: 4,
  play: (table) => storePair(table, { kind: "runs", commandsOf: runCommandsOf }),
  parts: [{ histories: runHistories, runs: 300 }],
  reached: outcomes({
    start: [
      ...["granted", "replayed", "succeeded", "failed", "run-in-progress", "fingerprint-mismatch", "attempts-exhausted"],
      ...["forbidden", "lease-over", "lease-reused", "lease-id-time"],
    ],
    renew: ["renewed", "forbidden", "unavailable", ...lost("expired", "taken", "broken", "released", "never")],
    complete: [
      ...["recorded", "replayed", "outcome-differs", "forbidden", "unavailable"],
      ...lost("expired", "taken", "broken", "released", "never"),
    ],
    release: ["released", "expired", "lost", "never", "unknown", "forbidden"],
    reset: ["reset", "run-in-progress", "not-found"],
  }),
  searchRuns: 300,
  mistakes: [
    // A start of a run.
    "size(h) = :zero",
    "(attribute_not_exists(f) OR f < :token)",
    "NOT (r0.i = :me)",
    "NOT (r7.i = :me)",
    "(attribute_not_exists(fl) OR fl < :me)",
    "attribute_not_exists(rn)",
    // A heartbeat.
    "h.#me.e <= :expires",
    "h.#me.g <= :margin",
    "h.#me.l = :length",
    "x >= :ttl",
    "attribute_not_exists(h.#me.b)",
    // An outcome.
    "fl <= r7.i",
    "h.#me.a >= :lately",
    // Both a heartbeat and an outcome.
    "h.#me.p = :principal",
    "h.#me.e > :earlier",
  ].map((predicate) => without(predicate, runHistories)),
});

/** A form that writes one part differently. */
const unwritten = (what: string, written: string, instead: string, played: Mistake<KindHistory>["histories"]): Mistake<KindHistory> => ({
  when: `if it doesn't write ${what}`,
  change: ({ client }: { readonly client: DynamoDBClient }) => distort(client, written, instead),
  histories: played,
});

const KINDS = row({
  name: "the store with its forms, in every kind",
  seed: 20_270_402,
  atOnce: 3,
  play: kindsStorePair,
  parts: [{ histories: kindHistories, runs: 120 }],
  reached: outcomes({
    acquire: ["granted", "nested", "replayed", "locked", "limit-mismatch", "lease-over", "lease-reused", "forbidden"],
    mode: [
      ...["changed", "replayed", "locked", "upgrade-conflict", "token-mismatch", "limit-mismatch", "forbidden"],
      ...lost("expired", "broken", "released"),
    ],
    transfer: ["transferred", "locked", ...lost("expired")],
    renew: ["renewed", "forbidden", ...lost("expired", "broken", "taken")],
    release: ["released", "expired"],
    break: ["breaking", "broken", "other-hold"],
  }),
  searchRuns: 200,
  mistakes: [
    // Without these predicates the form would overlook another holder, or take its lease for this client's.
    without("(attribute_not_exists(f) OR f < :token)", kindHistories),
    without("h.#me.p = :principal", kindHistories),
    without("h.#me.e > :earlier", kindHistories),
    without("attribute_not_exists(h.#me.b)", readerHistories),
    // A process that sees every change never needs `x <= :ttl`, and never grants a key that it has seen in use. forms.test.ts has writes that do.
    unwritten("that the first grant's token is the floor", "ff = :token", "ff = if_not_exists(ff, :token)", kindHistories),
    unwritten("the limit of the next caller", "lim = :limit", "lim = if_not_exists(lim, :limit)", permitHistories),
  ],
});

const QUEUE = row({
  name: "a queue that several processes see",
  seed: 20_270_701,
  atOnce: 3,
  play: queueStorePair,
  parts: [
    { histories: queueHistories, runs: 75 },
    { histories: writerHistories, runs: 75 },
    { histories: sleeperHistories, runs: 75 },
  ],
  reached: [
    ...outcomes({
      acquire: ["granted", "replayed", "waiting", "locked", "queue-full", "limit-mismatch", "lease-over", "lease-reused", "forbidden"],
      release: ["released", "expired", "never", "forbidden"],
      event: ["queued", "offered", "skipped", "granted", "ended", "changed", "transferred"],
      break: ["broken"],
      "for a sleeper": ["granted", "waiting", "forbidden", "lease-reused"],
    }),
    ...Object.keys(FORMS).map((write) => `by ${write}`),
  ],
  searchRuns: 75,
  mistakes: (
    [
      ["enqueue", "NOT contains(qi, :mark)"],
      ["decided", "v = :seen"],
    ] as const
  ).map(([write, predicate]) => ({
    when: `when the ${write} goes without ${predicate}`,
    change: ({ client }) => mutateWhere(client, FORMS[write], predicate),
    histories: writerHistories,
  })),
});

const CONDITIONS = row({
  name: "the store with its forms, with conditions",
  seed: 20_261_123,
  atOnce: 3,
  play: (table) => storePair(table, { kind: "locks", commandsOf: conditionCommandsOf }),
  parts: [{ histories: conditionHistories, runs: 150 }],
  reached: outcomes({
    acquire: ["granted", "waiting", "locked", "limit-mismatch"],
    wait: ["waiting", "not-exclusive", ...lost("expired", "never")],
    notify: ["notified", "replayed", "not-exclusive"],
    release: ["released", "never"],
    transfer: ["transferred"],
  }),
  searchRuns: 150,
  mistakes: ["attribute_not_exists(cw.#me)", "attribute_not_exists(cw)"].map((predicate) => without(predicate, conditionHistories)),
});

/** All kinds of histories. */
export const ROWS: readonly Row[] = [LOCKS, RUNS, KINDS, QUEUE, CONDITIONS];
