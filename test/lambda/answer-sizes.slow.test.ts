/** The largest possible answers, about the largest keys that callers can create: far below Lambda's limit of 6 MB. */
import { beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import type { LockRecord } from "../../lib/core/record.js";
import type { LockStore } from "../../lib/store/port.js";
import { ACQUIRE, directService } from "../support/direct-service.js";

const LAMBDA_ANSWER_BYTES = 6 * 1024 * 1024;
const KEYS = Array.from({ length: LIMITS.listMax }, (_, index) => `ORDER_${String(index).padStart(3, "0")}`);
/** A legal character that takes six bytes as JSON. */
const owner = "\u0001".repeat(LIMITS.ownerChars);
const bytesOf = (text: string): number => Buffer.byteLength(text);

const { ask, newId, store } = directService();
let held = 0;
let record: LockRecord;

beforeAll(async () => {
  const body = { mode: "shared", owner };
  while (held < LIMITS.leasesMax && (await ask(ACQUIRE, { leaseId: newId(), body })).status === 201) held++;
  for (let waiting = 0; waiting < LIMITS.waitersMax; waiting++)
    await ask(ACQUIRE, { leaseId: newId(), body: { owner }, headers: { prefer: "wait=0" } });
  record = (await store.read({ namespace: "default", kind: "locks", key: "ORDER_1" }))!;
});

it("a refusal names holders up to a bound in bytes, and says how many it leaves out", async () => {
  const { status, text, body } = await ask(ACQUIRE, { leaseId: newId() });
  expect([status, body.code, body.holders[0].owner]).toEqual([423, "locked", owner]);
  expect(bytesOf(text)).toBeLessThan(LIMITS.holdersBytes + 1024);
  expect((body.holders as unknown[]).length + Number(body.holdersOmitted)).toBe(held);
});

it("a refusal names all holders where they are few, and nothing is left out", async () => {
  await ask(ACQUIRE, { key: "FEW", leaseId: newId(), body: { owner } });
  const { body } = await ask(ACQUIRE, { key: "FEW", leaseId: newId() });
  expect([body.holders.length, body.holdersOmitted]).toEqual([1, undefined]);
});

describe("a page of held keys", () => {
  /** As many of the largest keys as one page may list. */
  const full: LockStore = {
    ...store,
    list: ({ after, max }) => {
      const left = KEYS.filter((key) => key > after);
      const items = left.slice(0, max).map((key) => ({ key, record }));
      return Promise.resolve({ items, ...(left.length > max && { next: items.at(-1)!.key }) });
    },
  };
  const list = (query: Readonly<Record<string, string>>) => directService({ store: full }).ask("GET /v1/locks", { query });

  it("ends before its bytes do, and the cursor leads on: every key once, in order", async () => {
    const keys: string[] = [];
    let cursor: string | undefined = "";
    let pages = 0;
    for (; cursor !== undefined && pages <= KEYS.length; pages++) {
      const { text, body }: Awaited<ReturnType<typeof list>> = await list({ max: "100", ...(cursor !== "" && { cursor }) });
      expect(bytesOf(text)).toBeLessThan(LIMITS.pageBytes + 1024);
      keys.push(...(body.items as { key: string }[]).map(({ key }) => key));
      cursor = body.cursor as string | undefined;
    }
    expect(keys).toEqual(KEYS);
    expect(pages).toBeGreaterThan(1);
  });

  it("isn't cut by what is of another owner than is asked for", async () => {
    const { body } = await list({ max: "100", owner: "nobody" });
    expect([body.items, body.cursor]).toEqual([[], undefined]);
  });

  it("control: all of them at once would be more than a function may answer", async () => {
    const { text } = await directService({ store: full }).ask("GET /v1/locks", { query: { max: "1" } });
    expect(KEYS.length * bytesOf(text)).toBeGreaterThan(LAMBDA_ANSWER_BYTES);
    expect(10 * LIMITS.pageBytes).toBeLessThan(LAMBDA_ANSWER_BYTES);
  });
});
