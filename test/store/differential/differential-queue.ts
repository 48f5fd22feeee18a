/**
 * Histories of a queue through two stores at once: the core behind conditional writes in memory, and the table as several processes see
 * it, each with its own recent record of the key. Both must give the same answers and store the same records.
 *
 * Two differences are intended. A renewal doesn't look for dead waiters behind a place that was left (`extendOnly`). An append (`queueBehind`) goes behind all others without checking whether the holder expired or the
 * offers of others lapsed. The first poll checks that. So an append must meet three conditions: it goes behind all others, it equals
 * the core's result if nothing expired or lapsed, and the core would not have refused it.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { DynamoDBClient, UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { expect } from "vitest";
import { queueBehind } from "../../../lib/core/lock/acquire.js";
import { check } from "../../../lib/core/lock/check.js";
import type { Acquire, LeaseEvent, Renew } from "../../../lib/core/commands.js";
import { extendOnly } from "../../../lib/core/lock/renew.js";
import { waiterFor, withWaiter } from "../../../lib/core/lock/places.js";
import { advanceQueue } from "../../../lib/core/lock/queue.js";
import type { LockRecord } from "../../../lib/core/record.js";
import { type ClockReading, systemClock } from "../../../lib/core/time.js";
import { transition } from "../../../lib/core/transition.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import { itemKey, storedIn, toItem } from "../../../lib/store/dynamo/item.js";
import { hasLeftPlaces } from "../../../lib/store/dynamo/lists.js";
import type { Address, LockStore } from "../../../lib/store/port.js";
import { createMemoryStore, createMemoryTable } from "../../support/memory-store.js";
import { type History, PROCESSES, resolver } from "./queue-histories.js";
import { freshNamespace, outcomeOf, POLICY, START_MS } from "../fixture.js";
import { type EngineTable, type Play, tellHoldsById, withHoldsById } from "./differential-pair.js";
import { expectSame } from "../../support/same.js";

/** The part of its update expression by which each form is recognised among the writes. */
export const FORMS = {
  enqueue: "q = list_append(q, :waiters)",
  claim: "SET h.#me = :hold",
  join: "SET h.#me = :joined",
  handOver: "h = if_not_exists(q[0].g, :nobody)",
  leave: "REMOVE h.#me",
  leavePlace: "= :empty, rl = list_append",
  renew: "h.#me.e = :expires",
  touchWaiter: ".u = :until",
  decided: "qi = :qi",
} as const;

// Over 60 lines: one model or one server, whose parts share its state.
export function queueStorePair({ client, calls, tableName }: EngineTable): Play<History> {
  const writtenBy = watchWrites(client);
  tellHoldsById(client);
  const documents = DynamoDBDocumentClient.from(client);

  return async (history, told) => {
    const address: Address = { namespace: freshNamespace(), kind: "locks", key: "ORDER_1" };
    const table = createMemoryTable();
    const memory = createMemoryStore({ policy: POLICY, table: withHoldsById(table) });
    let monotonicMs = START_MS;
    const clock = { ...systemClock, monotonicMs: () => monotonicMs };
    const startProcess = (): LockStore => createDynamoStore({ calls, tableName, policy: POLICY, clock, random: () => 0 });
    const startAll = (): LockStore[] => Array.from({ length: PROCESSES - 1 }, startProcess);
    let processes = startAll();
    const item = async (at: Address) =>
      (await documents.send(new GetCommand({ TableName: tableName, Key: itemKey(at), ConsistentRead: true }))).Item;

    // The store never writes the count of touches, so it stays in the item.
    const put = ({ touches, ...record }: LockRecord) =>
      documents.send(
        new PutCommand({
          TableName: tableName,
          Item: { ...itemKey(address), ...toItem(record), ...(touches !== undefined && { qv: touches }) },
        }),
      );

    if (history.remembered) {
      await table.replace(address, history.remembered, undefined);
      await put(history.remembered);
    }
    const resolve = resolver(history, address.key);
    const asked: unknown[] = [history.remembered];
    for (const step of history.steps) {
      const before = await memory.read(address);
      const { command, reading, nowMs } = resolve(step, before);
      monotonicMs = nowMs;
      asked.push([step.process, step.looks, reading, command]);
      const process = processes[step.process] ?? startProcess();
      if (step.looks && "leaseId" in command) {
        const seen = (record: LockRecord | undefined) => check(record, command, reading);
        expectSame(seen(await process.read(address)), seen(before), asked);
      }
      const { result: came, updates } = await writtenBy(() => process.apply(address, command, () => reading));
      const guesses = Object.entries(FORMS).filter(([, part]) => updates.some((update) => update.includes(part)));
      for (const [name] of guesses) told(`by ${name}`);

      const has = (part: string): boolean => updates.some((update) => update.includes(part));
      const replace = (next: LockRecord) => table.replace(address, next, before);
      const extendsBlind = has(FORMS.renew) && hasLeftPlaces(storedIn((await item(address))!));
      const wanted =
        has(FORMS.enqueue) && before && command.type === "acquire"
          ? await queuedBlind(before, command, reading, replace)
          : extendsBlind && before && command.type === "renew"
            ? await extendedBlind(before, command, reading, replace)
            : await memory.apply(address, command, () => reading);
      told(`${command.type}: ${outcomeOf(wanted.answer)}`);
      if (command.type === "acquire" && isAsleep(before, command)) told(`for a sleeper: ${outcomeOf(wanted.answer)}`);
      for (const { event } of wanted.events) told(`event: ${event}`);
      const together = wanted.events.filter(({ event }) => event === "ended").length > 1;
      const { answer, events } = came;
      expectSame(together ? inAnyOrder({ answer, events }) : { answer, events }, together ? inAnyOrder(wanted) : wanted, asked);
      const record = await memory.read(address);
      if (record !== before || updates.length > 0) {
        const kept = await startProcess().read(address);
        if (together && record && kept) {
          expectSame({ ...kept, tombstones: [], lowWatermark: "" }, { ...record, tombstones: [], lowWatermark: "" }, asked);
          await put(record);
          processes = startAll();
        } else expectSame(kept, record, asked);
      }
    }
    expectSame(await startProcess().read(address), await memory.read(address), asked);
  };
}

/** True if this lease sleeps in the queue, or is offered the key asleep. */
function isAsleep(record: LockRecord | undefined, { leaseId }: Acquire): boolean {
  const { offers = [], waiters = [] } = record ?? {};
  return [...offers, ...waiters].some((asking) => asking.leaseId === leaseId && asking.asleep);
}

/** Sorts leases that end together. They are reported and stored in the order of a map, which depends on the engine. */
function inAnyOrder<T extends { readonly events: readonly LeaseEvent[] }>(applied: T): T {
  return { ...applied, events: [...applied.events].sort((a, b) => (a.leaseId < b.leaseId ? -1 : 1)) };
}

/** Checks an append. */
async function queuedBlind(
  before: LockRecord,
  command: Acquire,
  reading: ClockReading,
  replace: (next: LockRecord) => Promise<unknown>,
): Promise<Pick<ReturnType<typeof queueBehind>, "answer" | "events">> {
  const { next, ...blind } = queueBehind(before, command, reading, POLICY);
  const { behind: _behind, commutes: _commutes, ...looked } = transition(before, command, reading, POLICY);
  expect(looked.answer).toMatchObject({ ok: true });
  const waiters = withWaiter(before.waiters, waiterFor(command, reading));
  if (!advanceQueue({ ...before, waiters }, reading, { leaseId: command.leaseId, isNew: true }).moved)
    expect({ next, ...blind }).toEqual(looked);
  if (next) await replace(next);
  return blind;
}

/** Renews, without looking for dead waiters behind a place that was left. */
async function extendedBlind(
  before: LockRecord,
  command: Renew,
  reading: ClockReading,
  replace: (next: LockRecord) => Promise<unknown>,
): Promise<Pick<ReturnType<typeof extendOnly>, "answer" | "events">> {
  const { answer, next, events } = extendOnly(before, command, reading, POLICY);
  if (next) await replace(next);
  return { answer, events };
}

/** Runs an action and returns its writes. */
function watchWrites(client: DynamoDBClient): <T>(act: () => Promise<T>) => Promise<{ result: T; updates: readonly string[] }> {
  const current = new AsyncLocalStorage<string[]>();
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { UpdateExpression: update } = args.input as Partial<UpdateItemCommandInput>;
      if (update !== undefined) current.getStore()?.push(update);
      return result;
    },
    { step: "initialize" },
  );
  return async (act) => {
    const updates: string[] = [];
    return { result: await current.run(updates, act), updates };
  };
}
