/** The core that a history of the queue is played with: the real one, or a mutant. */
import type { Held, Waiting } from "../../lib/core/commands.js";
import type { Refusal } from "../../lib/core/errors.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import { check } from "../../lib/core/lock/check.js";
import type { LockRecord } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { type Decide, decide } from "./kinds-broken.js";

interface Ref {
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly principal: string;
}

/** Decides commands and answers polls. */
export interface Core {
  readonly decide: Decide;
  readonly look: (record: LockRecord | undefined, ref: Ref, reading: ClockReading) => Held | Waiting | Refusal;
}

/** The unchanged core. */
export const CORE: Core = { decide, look: check };
