/**
 * The reference of the stores: the core's own decisions behind the reads and conditional writes of records in memory, without an item's layout
 * and without a write of its own for any command. The differential tests compare the real store with it. The simulation delays each read and
 * write.
 */
import type { Acquire, Command, Decision, Touch } from "../../lib/core/commands.js";
import { withTouch } from "../../lib/core/lock/pace.js";
import { isSameQueue } from "../../lib/core/lock/places.js";
import { type LimitRecord, decideShut, decideTake, fullAgain } from "../../lib/core/rate.js";
import type { LockRecord, LockPolicy } from "../../lib/core/record.js";
import { type Clock, systemClock } from "../../lib/core/time.js";
import { transition } from "../../lib/core/transition.js";
import type { Attempt, Change, Form, Stored, WriteAllResult, Written } from "../../lib/store/compare-and-set.js";
import { compareAndSet, compareAndSetAll } from "../../lib/store/compare-and-set.js";
import type { Address, Applied, LimitName, LimitStore, LockStore, Page, Part, TableTenancy } from "../../lib/store/port.js";

/** The outcome of a conditional write. A refused write returns the record that refused it. */
type WriteResult = { readonly written: true } | { readonly written: false; readonly seen: LockRecord | undefined };
type DecidedResult<C extends Command> = { readonly written: true; readonly decided: Applied<C> } | Extract<WriteResult, { written: false }>;

/** Records by address, with the two operations of a table. Each is atomic, and may be slow. */
export interface MemoryTable {
  read(address: Address): Promise<LockRecord | undefined>;
  /**
   * Writes `next` over the record that was `seen` (undefined: no record yet), if it is still that record. Leaves an
   * unchanged queue alone.
   */
  replace(address: Address, next: LockRecord, seen: LockRecord | undefined): Promise<WriteResult>;
  /** Writes a waiter's keep-alive, if the waiter is still at its place. The version stays the same. */
  touchWaiter(address: Address, touch: Touch): Promise<WriteResult>;
  /** Writes the decision on the present record, if it still commutes. */
  commute<C extends Command>(address: Address, decide: (present: LockRecord | undefined) => Decision<C>): Promise<DecidedResult<C>>;
  /** Writes all changes that have a `next`, if no record changed since it was seen, including those without a `next`. */
  replaceAll(changes: readonly Change<Stored>[]): Promise<boolean>;
  entries(): Iterable<readonly [Address, LockRecord]>;
  /** Large payloads, stored beside the records. */
  readonly payloads: Map<string, string>;
}

function idOf({ namespace, kind, key }: Address): string {
  return `${namespace}/${kind}/${key}`;
}

/**
 * True if a change that was decided on `seen` may be written. Keep-alives leave the version alone, so a changed queue
 * must also match `touches`.
 */
function isUnchanged(current: LockRecord | undefined, next: LockRecord | undefined, seen: LockRecord | undefined): boolean {
  if (current?.version !== seen?.version) return false;
  return !next || !current || !seen || isSameQueue(next, seen) || current.touches === seen.touches;
}

/** Returns `next`, with the current queue if the change leaves the queue alone. */
function overQueue(current: LockRecord | undefined, next: LockRecord, seen: LockRecord | undefined): LockRecord {
  const { touches } = current ?? {};
  const isLeft = current && seen && isSameQueue(next, seen);
  const waitSet = isLeft && current.waitSet && { waitSet: current.waitSet };
  return { ...next, ...(touches !== undefined && { touches }), ...waitSet, ...(isLeft && { waiters: current.waiters }) };
}

/** Creates a table in this process's memory. */
export function createMemoryTable(): MemoryTable & { remove(address: Address): void } {
  const records = new Map<string, readonly [Address, LockRecord]>();
  const get = (address: Address): LockRecord | undefined => records.get(idOf(address))?.[1];
  return {
    read: (address) => Promise.resolve(get(address)),
    replace(address, next, seen) {
      const current = get(address);
      if (!isUnchanged(current, next, seen)) return Promise.resolve({ written: false, seen: current });
      records.set(idOf(address), [address, overQueue(current, next, seen)]);
      return Promise.resolve({ written: true });
    },
    touchWaiter(address, touch) {
      const { waiter, index, inWaitSet } = touch;
      const current = get(address);
      const there = (inWaitSet ? current?.waitSet : current?.waiters)?.[index];
      if (!current || there?.leaseId !== waiter.leaseId || there.aliveUntilMs >= waiter.aliveUntilMs)
        return Promise.resolve({ written: false, seen: current });
      records.set(idOf(address), [address, withTouch(current, touch)]);
      return Promise.resolve({ written: true });
    },
    commute(address, decide) {
      const present = get(address);
      const { answer, next, events, commutes } = decide(present);
      if (!commutes || !next) return Promise.resolve({ written: false, seen: present });
      records.set(idOf(address), [address, next]);
      return Promise.resolve({ written: true, decided: { answer, events } });
    },
    replaceAll(changes) {
      if (changes.some(({ address, next, seen }) => !isUnchanged(get(address), next, seen?.record))) return Promise.resolve(false);
      for (const { address, next, seen } of changes)
        if (next) records.set(idOf(address), [address, overQueue(get(address), next, seen?.record)]);
      return Promise.resolve(true);
    },
    entries: () => records.values(),
    payloads: new Map(),
    remove: (address) => void records.delete(idOf(address)),
  };
}

/** Memory has one form: its operation goes by the decision. */
const CHANGE: Form = { fits: ({ decision: { next, touch } }) => next !== undefined || touch !== undefined };

/** Writes a decision: over whatever others wrote since, if it commutes or ends a lease that lost a race; else over what was seen. */
async function writeTo<C extends Command>(table: MemoryTable, address: Address, attempt: Attempt<C>): Promise<Written<C, Stored>> {
  const { command, reading, policy, seen, refusals } = attempt;
  const { answer, events, next, touch, commutes } = attempt.decision ?? transition(seen?.record, command, reading, policy);
  const endsAnyway = refusals > 0 && command.type === "release" && next !== undefined;
  if (commutes || endsAnyway) {
    const result = await table.commute(address, (present) => {
      const now = transition(present, command, reading, policy);
      return endsAnyway ? { ...now, commutes: true } : now;
    });
    return result.written ? result : { written: false, seen: storedOf(result.seen) };
  }
  const result = await (touch ? table.touchWaiter(address, touch) : next && table.replace(address, next, seen?.record));
  if (result?.written === false) return { written: false, seen: storedOf(result.seen) };
  return { written: true, decided: { answer, events } };
}

function storedOf(record: LockRecord | undefined): Stored | undefined {
  return record && { record };
}

/** Creates a store on `table`; the core makes all its decisions. */
export function createMemoryStore({
  policy,
  table = createMemoryTable(),
  clock = systemClock,
  random = () => 0,
  doors = [],
}: {
  readonly policy: LockPolicy;
  readonly table?: MemoryTable;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly doors?: readonly string[];
}): LockStore {
  let recorded: TableTenancy | undefined;
  return {
    limits: createMemoryLimits(),
    parameters: { format: 0, clockErrorMs: policy.clockErrorMs, retentionMs: policy.retentionMs },
    tenancy: (mine) => Promise.resolve((recorded ??= mine)),
    doors: () => Promise.resolve(doors),
    async apply<C extends Command>(address: Address, command: C, clocks: Parameters<LockStore["apply"]>[2]) {
      const read = async () => storedOf(await table.read(address));
      const write = (_form: Form, attempt: Attempt<C>) => writeTo(table, address, attempt);
      const known = { stored: await read(), isFresh: true };
      return compareAndSet(known, command, clocks, { forms: [CHANGE], read, write }, { policy, clock, random });
    },
    async applyAll(parts: readonly Part<Acquire>[], clocks: Parameters<LockStore["apply"]>[2]) {
      const readAll = () => Promise.all(parts.map(async ({ address }) => storedOf(await table.read(address))));
      const replaceAll = async (changes: readonly Change<Stored>[]): Promise<WriteAllResult<Stored>> =>
        (await table.replaceAll(changes)) ? { written: true } : { written: false, seen: await readAll() };
      return compareAndSetAll(await readAll(), parts, clocks, replaceAll, { policy, clock, random });
    },
    read: (address) => table.read(address),
    async keepPayload(address, { digest }, text) {
      if (text !== undefined) table.payloads.set(`${idOf(address)}/${digest}`, text);
    },
    readPayload: async (address, digest) => table.payloads.get(`${idOf(address)}/${digest}`),
    list({ namespace, kind, prefix, after, max }) {
      const found = [...table.entries()]
        .filter(
          ([address, record]) =>
            address.namespace === namespace &&
            address.kind === kind &&
            address.key.startsWith(prefix) &&
            address.key > after &&
            (record.run !== undefined || Object.keys(record.holds).length > 0),
        )
        .map(([{ key }, record]) => ({ key, record }));
      return Promise.resolve(pageOf(found, max));
    },
  };
}

/** Limits in this process's memory. */
export function createMemoryLimits(): LimitStore {
  const records = new Map<string, readonly [LimitName, LimitRecord]>();
  const idOfLimit = ({ namespace, key }: LimitName): string => `${namespace}/${key}`;
  return {
    async take(name, take, clocks) {
      const { answer, next } = decideTake(records.get(idOfLimit(name))?.[1], take, clocks());
      if (next) records.set(idOfLimit(name), [name, next]);
      return answer;
    },
    async shut(name, shut, clocks) {
      const { answer, next } = decideShut(records.get(idOfLimit(name))?.[1], shut, clocks());
      if (next) records.set(idOfLimit(name), [name, next]);
      return answer;
    },
    async reset(name) {
      const full = fullAgain(records.get(idOfLimit(name))?.[1]);
      if (full) records.set(idOfLimit(name), [name, full]);
      return full;
    },
    read: async (name) => records.get(idOfLimit(name))?.[1],
    async list({ namespace, prefix, after, max, fullAfterMs }) {
      const found = [...records.values()].filter(
        ([name, { buckets }]) =>
          name.namespace === namespace &&
          name.key.startsWith(prefix) &&
          name.key > after &&
          buckets.some(({ fullAtUs }) => fullAtUs > fullAfterMs * 1000),
      );
      return pageOf(
        found.map(([{ key }, record]) => ({ key, record })),
        max,
      );
    },
  };
}

/** Returns the first `max` of these in the order of their keys. */
function pageOf<Stored>(found: readonly { readonly key: string; readonly record: Stored }[], max: number): Page<Stored> {
  const items = found.toSorted((a, b) => (a.key < b.key ? -1 : 1)).slice(0, max);
  const last = items.at(-1);
  return found.length > max && last ? { items, next: last.key } : { items };
}
