/**
 * Concurrent requests: of several conflicting requests, exactly one succeeds. Beside each race is its control, the same
 * requests without a conflict, which must all be granted. Otherwise a service that refuses everything would pass.
 */
import { expect } from "vitest";
import type { Calls, Put } from "../calls.js";
import type { Suite } from "../suite.js";

/** The number of concurrent writers to one key, one after the other, that the service accepts before it answers 429. */
const FEW = 5;

/** Races for one key, one leaseId, one set, one run. */
export function races({ it }: Suite, { fixture, freshKey, newId, send, put, queue, hold, release, start, begin }: Calls): void {
  const atOnce = <T>(ask: (index: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: fixture().atOnce }, (_, n) => ask(n)));
  const statusesOf = (replies: readonly { readonly status: number }[]): number[] => replies.map(({ status }) => status).sort();
  /** A grant is 200 if the service repeated its own write because the table's answer was late. */
  const outcomesOf = (replies: readonly { readonly status: number }[]): number[] =>
    statusesOf(replies.map(({ status }) => ({ status: status === 200 ? 201 : status })));
  const oneThen = (first: number, others: number): number[] => [first, ...Array<number>(fixture().atOnce - 1).fill(others)];
  const all = (status: number): number[] => Array<number>(fixture().atOnce).fill(status);

  it("for one key grant it to exactly one; control: for as many keys, to everyone", async () => {
    const key = freshKey();
    expect(outcomesOf(await atOnce(() => put(key)))).toEqual(oneThen(201, 423));
    expect(outcomesOf(await atOnce(() => put(freshKey())))).toEqual(all(201));
  });

  it("under one leaseId grant one lease: one 201, the others 200, one token; control: under as many ids, readers get one each", async () => {
    const [key, leaseId] = [freshKey(), newId()];
    const replies = await atOnce(() => put(key, {}, { leaseId }));
    expect(statusesOf(replies)).toEqual(oneThen(201, 200).sort());
    expect(new Set(replies.map(({ body }) => body.fencingToken as number)).size).toBe(1);
    const shared = freshKey();
    const readers = await Promise.all(Array.from({ length: FEW }, () => put(shared, { mode: "shared" })));
    expect(statusesOf(readers)).toEqual(Array(FEW).fill(201));
    expect(new Set(readers.map(({ body }) => body.fencingToken as number)).size).toBe(FEW);
  });

  it("for permits grant as many as there are; control: as many as there are, all of them", async () => {
    const [scarce, enough] = [freshKey(), freshKey()];
    const granted = (await atOnce(() => put(scarce, { limit: FEW }))).filter(({ status }) => status === 201);
    expect(granted).toHaveLength(Math.min(FEW, fixture().atOnce));
    const replies = await Promise.all(Array.from({ length: FEW }, () => put(enough, { limit: FEW })));
    expect(statusesOf(replies)).toEqual(Array(FEW).fill(201));
  });

  it("for sets that share a key grant one, whole; control: disjoint sets are all granted", async () => {
    const [shared, ours] = [freshKey(), Array.from({ length: 4 }, freshKey)];
    const putSet = (keys: string[]) => send("PUT", `/v1/lock-sets/${newId()}`, { body: { keys } });
    const replies = await Promise.all(ours.map((own) => putSet([own, shared])));
    expect(statusesOf(replies)).toEqual([201, 423, 423, 423]);
    const won = Object.keys(replies.find(({ status }) => status === 201)?.body.fencingTokens as object);
    for (const own of ours) expect((await put(own)).status).toBe(won.includes(own) ? 423 : 201);
    expect(statusesOf(await Promise.all(ours.map(() => putSet([freshKey(), freshKey()]))))).toEqual([201, 201, 201, 201]);
  });

  it("to run one piece of work let one run it; control: as many pieces are all run", async () => {
    const key = freshKey();
    expect(outcomesOf(await atOnce(() => start(key)))).toEqual(oneThen(201, 409));
    expect(outcomesOf(await atOnce(() => start(freshKey())))).toEqual(all(201));
  });

  it("to release a lease end it once, and one of those that ask next has it", async () => {
    const held = await hold();
    expect(new Set(await atOnce(() => release(held)))).toEqual(new Set(["released"]));
    expect(statusesOf(await atOnce(() => put(held.key)))).toEqual(oneThen(201, 423));
  });

  it("for places in a queue give each its own, and turns in that order", async () => {
    const held = await hold();
    const waiting = await Promise.all(Array.from({ length: 4 }, () => queue(held.key)));
    expect(statusesOf(waiting)).toEqual([202, 202, 202, 202]);
    const places = await Promise.all(waiting.map((one) => queue(held.key, {}, one)));
    const inOrder = places.toSorted((a, b) => (a.body.position as number) - (b.body.position as number));
    expect(inOrder.map(({ body }) => body.position as number)).toEqual([1, 2, 3, 4]);
    let last: Put = held;
    for (const waiter of inOrder) {
      await release(last);
      const [first, ...others] = [waiter, ...inOrder.filter((other) => other !== waiter && other.body.position > waiter.body.position)];
      const replies = await Promise.all([...others, first].map((one) => queue(held.key, {}, one)));
      expect(replies.map(({ status }) => status)).toEqual([...others.map(() => 202), 201]);
      last = waiter;
    }
  });

  it("of an acquire and its own cancel end in no lease that lives", async () => {
    for (let time = 0; time < 5; time++) {
      const [key, leaseId] = [freshKey(), newId()];
      const url = `/v1/locks/${key}/leases/${leaseId}`;
      const [state] = await Promise.all([release({ url }), put(key, {}, { leaseId })]);
      expect(["released", "never"]).toContain(state);
      expect((await put(key, {}, { leaseId })).status).toBe(410);
      await hold(key);
    }
  });

  it("of an outcome told twice record it once", async () => {
    const run = await begin();
    const told = await Promise.all(
      Array.from({ length: 4 }, () => send("PUT", `${run.url}/outcome`, { body: { state: "succeeded", result: 1 } })),
    );
    expect(statusesOf(told)).toEqual([200, 200, 200, 200]);
    expect(told.filter(({ headers }) => headers["idempotent-replayed"] === undefined)).toHaveLength(1);
  });
}
