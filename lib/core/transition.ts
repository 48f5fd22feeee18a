/**
 * The lock as a state machine: (record, command, clocks) → what is answered and what becomes of the
 * record. Pure; the only place where the rules of DESIGN are decided. Stores carry its decisions out,
 * and whatever a store guesses must come to the same.
 */
import { acquire } from "./acquire.js";
import { breakHold } from "./break.js";
import { changeMode } from "./change-mode.js";
import type { Command, Decision } from "./commands.js";
import { conclude } from "./conclude.js";
import type { LockRecord, LockRules } from "./record.js";
import { release } from "./release.js";
import { renew } from "./renew.js";
import { reset } from "./reset.js";
import { start } from "./start.js";
import type { ClockReading } from "./time.js";
import { transfer } from "./transfer.js";

/** Decides `command` on `record` (undefined: the key has no item). */
export function transition<C extends Command>(
  record: LockRecord | undefined,
  command: C,
  reading: ClockReading,
  rules: LockRules,
): Decision<C>;
export function transition(record: LockRecord | undefined, command: Command, reading: ClockReading, rules: LockRules): Decision {
  switch (command.type) {
    case "acquire":
      return acquire(record, command, reading, rules);
    case "renew":
      return renew(record, command, reading, rules);
    case "release":
      return release(record, command, reading, rules);
    case "transfer":
      return transfer(record, command, reading, rules);
    case "break":
      return breakHold(record, command, reading, rules);
    case "mode":
      return changeMode(record, command, reading, rules);
    case "start":
      return start(record, command, reading, rules);
    case "conclude":
      return conclude(record, command, reading, rules);
    case "reset":
      return reset(record, command, reading, rules);
  }
}
