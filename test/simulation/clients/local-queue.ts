/**
 * A waiter over plain HTTP that follows the service's instructions. It asks by PUT, polls by GET when that is useful or at the last
 * moment, asks again when the service says so, and holds the lock. It leaves, dies and freezes on the way.
 */
import { type LeaseDeadline, deadlineFrom, deadlineLeftMs } from "../../../lib/client/ask/deadline.js";
import type { LeaseState, LeaseView, Waiting } from "../../../lib/core/commands.js";
import type { Refusal } from "../../../lib/core/errors.js";
import { leaseIdFrom } from "../../../lib/core/lease-id.js";
import type { Mode } from "../../../lib/core/record.js";
import { elapsedMs, instantOf } from "../../../lib/core/time.js";
import { sleep } from "./application.js";
import type { Actor, Stage } from "../stage.js";

/** The longest wait for an answer. Then the waiter asks again. */
const UNANSWERED_MS = 2500;

/** The most failures of a release, and the most answers that ask it to come later. */
const FAILURES_MOST = 3;
const DELAYS_MOST = 20;

/** The acquire parameters, and the waiter's behaviour in the queue. */
export interface Place {
  readonly mode?: Mode;
  readonly limit?: number;
  readonly permits?: number;
  readonly priority?: number;
  readonly leaseMs?: number;
  readonly owner?: string;
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** An answer, and the time of its request. */
interface Touch {
  readonly status: number;
  readonly body: unknown;
  readonly leaseState: string | null;
}

/** A place in a queue, or the lease that it led to. */
export class Customer {
  leaseId: string;
  #deadline: LeaseDeadline | undefined;
  #isOver = false;
  readonly #lost = new AbortController();
  fencingToken = 0;

  constructor(
    readonly stage: Pick<Stage, "random" | "oracle">,
    readonly actor: Actor,
    readonly key: string,
    readonly place: Place,
    /** The `Prefer: wait` of its requests, in seconds. */
    readonly patienceSec: number,
  ) {
    this.leaseId = leaseIdFrom(actor.process.wallMs(), stage.random.bytes(10));
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  isHeld(): boolean {
    return !this.#isOver && this.remainingMs() > 0;
  }

  remainingMs(): number {
    return this.#deadline && !this.#isOver ? Math.max(0, deadlineLeftMs(this.#deadline, this.actor.process)) : 0;
  }

  /** Asks for the lock. Returns its place in the queue, or `held`, or the status of the refusal. */
  async ask(): Promise<Waiting | "held" | number> {
    const { actor, key, place, stage } = this;
    const sentAt = instantOf(actor.process);
    const { status, body } = await this.#send("PUT", place);
    if (status === 202) return body as Waiting;
    if (status === 410 || status === 422) this.#takeAnotherId(body as Partial<Refusal>);
    if (status !== 200 && status !== 201) return status;
    const lease = body as LeaseView;
    this.#deadline = deadlineFrom(lease, sentAt);
    this.fencingToken = lease.fencingToken;
    if (this.isHeld()) stage.oracle.handedRaw(key, this);
    return "held";
  }

  /** Asks to wait asleep for this long, and to be woken by `taskToken`. Returns the status. */
  async fallAsleep(taskToken: string, sleepSec: number): Promise<number> {
    return (await this.#send("PUT", { ...this.place, wake: { taskToken } }, sleepSec)).status;
  }

  /** Polls its place. */
  async look(): Promise<Waiting | number> {
    const { status, body } = await this.#send("GET");
    return status === 202 ? (body as Waiting) : status;
  }

  /** Releases the lease or leaves the queue. Comes later when the service says so. */
  async leave(): Promise<void> {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#lost.abort();
    }
    let [failures, delays] = [0, 0];
    while (failures < FAILURES_MOST && delays < DELAYS_MOST) {
      const { status, leaseState, body } = await this.#send("DELETE");
      if (status === 429) {
        delays++;
        await sleep(this.actor, (body as Refusal).retryAfterMs ?? 0);
        continue;
      }
      if (status !== 204) {
        failures++;
        continue;
      }
      // For an id that never held, a key with few tombstones left reports less.
      if (this.fencingToken > 0) this.stage.oracle.toldEnding(this.key, this.leaseId, leaseState as LeaseState);
      return;
    }
  }

  /** Takes an id that the key's low watermark and the service's clock allow it to hold with. */
  #takeAnotherId({ leaseIdAboveMs = 0, serverTimeMs }: Partial<Refusal>): void {
    const { actor, stage } = this;
    this.leaseId = leaseIdFrom(Math.max(serverTimeMs ?? actor.process.wallMs(), leaseIdAboveMs + 1), stage.random.bytes(10));
  }

  /** Sends a request. The status is 0 if there is no response. */
  async #send(method: string, body?: object, preferSec = this.patienceSec): Promise<Touch> {
    const { actor, key, leaseId, patienceSec } = this;
    const headers = { "content-type": "application/json", ...(method === "PUT" && { prefer: `wait=${preferSec}` }) };
    const sent = actor.send(`http://simulated/v1/locks/${key}/leases/${leaseId}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    const heard = sent.then(async (response): Promise<Touch> => {
      const text = await response.text();
      return { status: response.status, body: text === "" ? undefined : JSON.parse(text), leaseState: response.headers.get("lease-state") };
    });
    const unanswered = sleep(actor, UNANSWERED_MS + 1000 * patienceSec).then((): Touch => ({
      status: 0,
      body: undefined,
      leaseState: null,
    }));
    return Promise.race([heard, unanswered]);
  }
}

/** Waits in the queue for as long as it chooses, and uses the key when it gets it. */
export async function standInLine(stage: Stage, actor: Actor, key: string, kind: Place): Promise<void> {
  const { random, oracle, world } = stage;
  const place = { ...kind, leaseMs: random.pick([1000, 2000, 6000]), priority: random.pick([0, 0, 0, 0, 3]) };
  const customer = new Customer(stage, actor, key, place, random.pick([0, 0, 0, 2]));
  if ((await untilHeld(customer, { waitMs: random.between(0, 40_000), isEager: random.chance(0.5), falters: true })) !== "held") {
    if (random.chance(0.9)) await customer.leave();
    return;
  }
  await sleep(actor, random.chance(0.7) ? random.between(0, 500) : random.between(0, 8000));
  const { leaseId, fencingToken } = customer;
  if (customer.isHeld() && kind.mode !== "shared" && kind.limit === undefined)
    world.in(random.between(1, 20), () => oracle.resourceWrite("locks", key, { leaseId, fencingToken }));
  if (random.chance(0.1)) actor.process.crash();
  await customer.leave();
}

/** Asks and polls as the service says: eagerly, or as late as allowed. With `falters`, it may die, freeze or change its mind. */
export async function untilHeld(
  customer: Customer,
  { waitMs, isEager, falters = false }: { readonly waitMs: number; readonly isEager: boolean; readonly falters?: boolean },
): Promise<"held" | "gaveUp"> {
  const { actor, stage } = customer;
  const { process } = actor;
  const { random } = stage;
  const began = instantOf(process);
  let mustAsk = true;
  while (elapsedMs(began, instantOf(process)) < waitMs) {
    const told: Waiting | "held" | number = mustAsk ? await customer.ask() : await customer.look();
    if (told === "held") return "held";
    if (typeof told === "number") {
      // There was no response, or the service was unavailable. A poll that finds no place asks for another.
      if (![0, 200, 410, 422, 429, 503].includes(told)) return "gaveUp";
      mustAsk = true;
      await sleep(actor, told === 429 || told === 503 ? random.between(0, 1000) : 0);
      continue;
    }
    mustAsk = told.retryAfterMs === 0;
    if (falters && random.chance(0.02)) process.crash();
    if (falters && random.chance(0.03)) process.pause(random.between(0, 15_000));
    if (falters && random.chance(0.03)) return "gaveUp";
    if (!mustAsk) await sleep(actor, isEager ? told.retryAfterMs : told.pollWithinMs);
  }
  return "gaveUp";
}
