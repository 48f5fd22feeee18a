/** The queue moves as the table of moves says, and each move costs one write. */
import { describe, expect, it } from "vitest";
import { outcomeOf } from "../store/fixture.js";
import { QueueKey } from "./queue-key.js";
import { type Move, ARRIVING, ASKING, GOING } from "./queue-moves.js";

function play({ steps, ask }: Move): { readonly is: string; readonly rose: number } {
  const key = new QueueKey();
  for (const step of steps) step(key);
  const before = key.record?.version;
  const outcome = outcomeOf(ask(key));
  const rose = before === undefined ? 1 : (key.record?.version ?? 0) - before;
  return { is: `${outcome}: ${key.all} · ${key.events}`.trimEnd(), rose };
}

describe.each(Object.entries({ "somebody comes, and": ARRIVING, "somebody of the queue asks again, and": ASKING, "": GOING }))(
  "%s",
  (_who, moves) => {
    it.each(moves.map((each) => ({ ...each })))("$when", (each) => {
      const { is, rose } = play(each);
      expect(is).toBe(each.is);
      expect(rose).toBeLessThanOrEqual(1);
    });
  },
);
