/**
 * The forms in every state, on the simulation's table: a write whose condition holds leaves exactly the record that the core would, and
 * any other leaves the item as it was.
 */
import { describe, expect, it } from "vitest";
import { transition } from "../../lib/core/transition.js";
import { toItem } from "../../lib/store/dynamo/item.js";
import { wholly } from "../../lib/store/dynamo/lists.js";
import { ALL_STATES, COLUMNS, decisionsIn } from "../core/decisions.js";
import { type Asked, type Came, decidedPathOf, expectTold, take, written } from "./form-cases.js";
import { POLICY } from "./fixture.js";

/** Takes a write that commutes with others, decided on the record. */
function takeTogether({ before, command, reading }: Pick<Asked, "before" | "command" | "reading">): Came {
  if (!before || !transition(before, command, reading, POLICY).commutes) return "none";
  const asked = { kind: "locks", before, command, reading } as const;
  const path = decidedPathOf(asked);
  return path ? take(asked, path) : "none";
}

describe("a form on a lock", () => {
  it.each(ALL_STATES)("leaves what the core would, or nothing: $state", (state) => {
    for (const { command, before, reading } of decisionsIn(state, COLUMNS))
      for (const seen of [undefined, before && wholly(before)]) take({ kind: "locks", command, before, reading, seen });
  });

  it.each(ALL_STATES)("that commutes leaves what the core would, and is always taken: $state", (state) => {
    for (const { command, before, reading } of decisionsIn(state, COLUMNS)) {
      // As long as a record of this kind is kept in fact, so that no release has to raise it.
      const keptSec = Math.ceil((reading.latestMs + POLICY.retentionMs) / 1000);
      const kept = before && command.type !== "renew" ? { ...before, ttlAtSec: Math.max(before.ttlAtSec, keptSec) } : before;
      expect(takeTogether({ command, before: kept, reading }), JSON.stringify(command)).not.toBe("refused");
    }
  });

  it.each(ALL_STATES)("that ends a lease after lost races is told and remembered as it was written: $state", (state) => {
    for (const { command, before, reading } of decisionsIn(state, COLUMNS)) {
      const asked = { kind: "locks", command, before, reading } as const;
      const path = command.type === "release" && before && decidedPathOf(asked, 2);
      const item = before && toItem(before);
      const stored = path && item && written("locks", item, path, reading);
      if (stored) expectTold(asked, path, item, stored);
    }
  });
});
