/** Operations on a key from outside of its lease, over HTTP: inspect, list and break. */
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

const MINUTE_MS = 60_000;
/** Pages of two keys each, over five keys and any keys in between. */
const MAX_PAGES = 10;

export function inspects({ it }: Suite, { fixture, freshKey, get, post, queue, hold, release }: Calls): void {
  it("shows a key that nobody ever used as free, never 404", async () => {
    const key = freshKey();
    const { status, headers, body } = await get(`/v1/locks/${key}`);
    expect([status, body.key, body.holders, body.waiters]).toEqual([200, key, [], []]);
    expect(headers["etag"]).toMatch(/^"[^"]+"$/);
  });

  it("shows who holds, since when and for how long, and no leaseId", async () => {
    const held = await hold(undefined, { leaseMs: MINUTE_MS, owner: "checkout-7" });
    const { body, text } = await get(`/v1/locks/${held.key}`);
    const { fencingToken } = held.body;
    expect(body).toMatchObject({ key: held.key, mode: "exclusive", fencingToken, waiters: [] });
    expect(body.holders).toMatchObject([{ owner: "checkout-7", mode: "exclusive", permits: 1, fencingToken }]);
    expect(body.holders[0].heldMs).toBeGreaterThanOrEqual(0);
    expect(body.holders[0].remainingMs).toBeLessThanOrEqual(MINUTE_MS);
    expect(text).not.toContain(held.leaseId);
  });

  it("has an ETag that who holds and who waits change, and a heartbeat does not; 304 to who knows it", async () => {
    const key = freshKey();
    const tagOf = async (): Promise<string> => (await get(`/v1/locks/${key}`)).headers["etag"] ?? "";
    const tags = [await tagOf()];
    const held = await hold(key);
    tags.push(await tagOf());
    await post(`${held.url}/renew`);
    const unchanged = await get(`/v1/locks/${key}`, { "if-none-match": tags[1]! });
    expect([unchanged.status, unchanged.text, unchanged.headers["etag"]]).toEqual([304, "", tags[1]]);
    await queue(key);
    tags.push(await tagOf());
    await release(held);
    tags.push(await tagOf());
    expect(new Set(tags).size).toBe(tags.length);
    expect((await get(`/v1/locks/${key}`, { "if-none-match": tags[1]! })).status).toBe(200);
    expect((await get(`/v1/locks/${key}`, { "if-none-match": `"other", W/${tags[3]}` })).status).toBe(304);
    expect((await fixture().passing(get(`/v1/locks/${key}`, { "if-none-match": tags[3]!, prefer: "wait=1" }))).status).toBe(304);
  });
}

/** Listing keys. */
export function lists({ itWith }: Suite, { fixture, get, hold, release }: Calls): void {
  itWith("operators", "shows the held keys of a prefix, in order, by owner, page by page", async () => {
    const prefix = `${fixture().prefix}_list:`;
    const names = ["a", "b", "c", "d", "e"];
    const held = new Map<string, Awaited<ReturnType<typeof hold>>>();
    for (const name of names) held.set(name, await hold(prefix + name, { owner: name === "b" ? "me" : "other" }));
    await release(held.get("c")!);
    const all = await get(`/v1/locks?prefix=${encodeURIComponent(prefix)}`);
    const keysOf = (reply: typeof all): string[] => (reply.body.items as { key: string }[]).map(({ key }) => key);
    expect(keysOf(all)).toEqual(["a", "b", "d", "e"].map((name) => prefix + name));
    expect(all.body.items[0]).toMatchObject({ holders: [{ owner: "other", fencingToken: held.get("a")!.body.fencingToken }], waiters: [] });
    for (const { leaseId } of held.values()) expect(all.text).not.toContain(leaseId);
    expect(keysOf(await get(`/v1/locks?prefix=${prefix}&owner=me`))).toEqual([`${prefix}b`]);

    const paged: string[] = [];
    let query = `/v1/locks?prefix=${prefix}&max=2`;
    for (let pages = 0; pages < MAX_PAGES && query !== ""; pages++) {
      const page = await get(query);
      expect(keysOf(page).length).toBeLessThanOrEqual(2);
      paged.push(...keysOf(page));
      query = page.body.cursor === undefined ? "" : `/v1/locks?prefix=${prefix}&max=2&cursor=${encodeURIComponent(page.body.cursor)}`;
    }
    expect(paged).toEqual(keysOf(all));
  });
}

/** Breaking another caller's hold. */
export function breaks({ itWith }: Suite, { get, post, put, hold, release }: Calls): void {
  const end = ({ key, body }: { key: string; body: { fencingToken?: number } }, rest: object = {}) =>
    post(`/v1/locks/${key}/break`, { reason: "stuck", fencingToken: body.fencingToken, ...rest });

  itWith("operators", "without force is 202: the holder keeps what it was promised, and can't renew it", async () => {
    const held = await hold(undefined, { leaseMs: MINUTE_MS });
    const broken = await end(held);
    expect(broken.status).toBe(202);
    expect(broken.body.breakInMs).toBeGreaterThan(0);
    expect((await get(held.url)).status).toBe(200);
    const renewed = await post(`${held.url}/renew`);
    expect([...told(renewed), renewed.body.reason]).toEqual([410, "lease-lost", "broken"]);
    expect(told(await put(held.key))).toEqual([423, "locked"]);
    expect(await release(held)).toBe("released");
  });

  itWith("operators", "by force is 202 until the drain is over, and 200 where there is none: what was guarded is lost", async () => {
    const held = await hold(undefined, { leaseMs: MINUTE_MS });
    const draining = await end(held, { drainMs: 30_000 });
    expect(draining.status).toBe(202);
    expect(draining.body.breakInMs).toBeLessThan(MINUTE_MS);
    expect((await get(held.url)).body.remainingMs).toBeLessThanOrEqual(30_000);
    const over = await end(held, { drainMs: 0 });
    expect([over.status, over.body.breakInMs]).toEqual([200, 0]);
    const next = await hold(held.key);
    expect(next.body.fencingToken).toBeGreaterThan(held.body.fencingToken as number);
    const lost = await get(held.url);
    expect([...told(lost), lost.body.reason]).toEqual([410, "lease-lost", "broken"]);
    expect(await release(held)).toBe("lost");
    expect((await end(held, { drainMs: 0 })).status).toBe(200);
    expect((await get(next.url)).status).toBe(200);
  });
}
