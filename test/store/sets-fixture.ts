/** Sets of keys of one store: acquires of several keys, and the holders of each key. */
import type { Acquire, Held, Waiting } from "../../lib/core/commands.js";
import type { Refusal } from "../../lib/core/errors.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import type { Applied, LockStore } from "../../lib/store/port.js";
import { type AcquireOptions, freshNamespace, outcomeOf, Fixture } from "./fixture.js";

/** The keys of one namespace, at the same time. */
export class SetScene {
  private ms = 0;

  constructor(
    readonly store: LockStore,
    readonly namespace = freshNamespace(),
  ) {}

  /** The same keys, by the requests of another store. */
  by(store: LockStore): SetScene {
    return new SetScene(store, this.namespace).at(this.ms);
  }

  at(ms: number): this {
    this.ms = ms;
    return this;
  }

  key(name: string): Fixture {
    return new Fixture(this.store, { namespace: this.namespace, key: name }).at(this.ms);
  }

  /** Acquires all of these keys or none, and returns the outcome of each. */
  async acquire(id: LeaseId, keys: readonly string[], options: AcquireOptions = {}): Promise<readonly (Applied<Acquire> | undefined)[]> {
    const { by = "P", ...given } = options;
    const usual = {
      principal: by,
      owner: "",
      leaseMs: 10_000,
      mode: "exclusive",
      limit: 1,
      permits: 1,
      priority: 0,
      requestHash: "same",
    } as const;
    const parts = keys.map((key) => ({
      address: { namespace: this.namespace, kind: "locks" as const, key },
      command: { type: "acquire" as const, key, leaseId: id, ...usual, ...given },
    }));
    const { clocks } = this.key("");
    return this.store.applyAll(parts, () => clocks);
  }

  async holders(keys: readonly string[]): Promise<readonly (readonly LeaseId[])[]> {
    return Promise.all(keys.map(async (key) => Object.keys((await this.key(key).read())?.holds ?? {})));
  }

  records(keys: readonly string[]) {
    return Promise.all(keys.map((key) => this.key(key).read()));
  }
}

/** The outcome of a set: the common outcome of its keys, or the refused keys with their outcomes. */
export function setOutcome(keys: readonly string[], applied: readonly (Applied<Acquire> | undefined)[]): string {
  const answers: readonly (Held | Waiting | Refusal | undefined)[] = applied.map((one) => one?.answer);
  const refused = answers.flatMap((answer, index) => (answer && !answer.ok ? [`${keys[index] ?? ""} ${outcomeOf(answer)}`] : []));
  if (refused.length > 0) return refused.join(", ");
  const words = new Set(answers.map((answer) => (answer ? outcomeOf(answer) : "undecided")));
  return [...words].sort().join(" and ");
}
