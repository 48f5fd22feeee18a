/** One run's key of a store with simulated time: the fixture of a lock, with the commands of runs. */
import type { Complete, Finished, Recorded, Running, WasReset } from "../../lib/core/commands.js";
import type { Refusal } from "../../lib/core/errors.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import type { Payload } from "../../lib/core/record.js";
import type { Address, LockStore } from "../../lib/store/port.js";
import { LEASE_MS, Fixture } from "./fixture.js";

/**
 * A minute in ms: the default time for which outcomes are stored here. It differs from the real default, so the fast
 * path never assumes it.
 */
export const KEEP_MS = 60_000;

/** The options of a start besides its leaseId. */
export interface StartOptions {
  readonly by?: string;
  readonly owner?: string;
  readonly leaseMs?: number;
  readonly fingerprint?: string;
  readonly keepResultMs?: number;
  readonly maxAttempts?: number;
  readonly requestHash?: string;
}

/** The options of an outcome besides its state. */
export interface OutcomeOptions {
  readonly by?: string;
  readonly payload?: Payload;
  readonly omitted?: true;
}

/** A payload that the record itself contains. */
export function small(text: string): Payload {
  return { digest: `small ${text}`, bytes: text.length, text };
}

/** A payload with its own item, stored until this time. */
export function large(name: string, ttlAtSec: number): Payload {
  return { digest: `large ${name}`, bytes: 5_000, ttlAtSec };
}

/** A run's key that no other test uses. */
export class RunScene extends Fixture {
  constructor(store: LockStore, where: Partial<Address> = {}) {
    super(store, { ...where, kind: "runs" });
  }

  async start(
    id: LeaseId,
    {
      by = "P",
      owner = "",
      leaseMs = LEASE_MS,
      fingerprint = "",
      keepResultMs = KEEP_MS,
      maxAttempts = 0,
      requestHash = "same",
    }: StartOptions = {},
  ): Promise<Running | Finished | Refusal> {
    const { key } = this.address;
    const said = { owner, leaseMs, fingerprint, keepResultMs, maxAttempts, requestHash };
    return (await this.apply({ type: "start", key, leaseId: id, principal: by, ...said })).answer;
  }

  async complete(
    id: LeaseId,
    state: Complete["state"] = "succeeded",
    { by = "P", ...said }: OutcomeOptions = {},
  ): Promise<Recorded | Refusal> {
    return (await this.apply({ type: "complete", key: this.address.key, leaseId: id, principal: by, state, ...said })).answer;
  }

  /** Sends a heartbeat with a checkpoint. */
  async save(id: LeaseId, checkpoint: Payload, { by = "P", leaseMs }: { readonly by?: string; readonly leaseMs?: number } = {}) {
    const length = leaseMs !== undefined && { leaseMs };
    return (await this.apply({ type: "renew", key: this.address.key, leaseId: id, principal: by, checkpoint, ...length })).answer;
  }

  async reset(): Promise<WasReset | Refusal> {
    return (await this.apply({ type: "reset", key: this.address.key })).answer;
  }
}

/** The lease and the attempt in an answer that must report a running run. */
export function runningIn(answer: Running | Finished | Refusal): Running {
  if (!answer.ok || answer.state !== "running") throw new Error(`does not run: ${JSON.stringify(answer)}`);
  return answer;
}
