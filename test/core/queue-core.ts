/** The decisions that a history of the queue is played with: the core's own, or mistaken ones. */
import type { Held, Waiting } from "../../lib/core/commands.js";
import type { Refusal } from "../../lib/core/errors.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import { check } from "../../lib/core/lock/check.js";
import type { LockRecord } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import type { Decide } from "./kinds-broken.js";
import { decide } from "./kinds-broken.js";

interface Ref {
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly principal: string;
}

/** Decides commands and answers checks. */
export interface Core {
  readonly decide: Decide;
  readonly look: (record: LockRecord | undefined, ref: Ref, reading: ClockReading) => Held | Waiting | Refusal;
}

/** The core as it is. */
export const CORE: Core = { decide, look: check };
