/** Readers and writers over HTTP: one key in both modes, and changes between them. */
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

const SHARED = { mode: "shared", leaseMs: 20_000 };

/** The compatibility of holders. */
export function shares({ it }: Suite, { freshKey, get, put, hold, release }: Calls): void {
  it("lets readers hold together, each with its own token and the floor that a resource compares", async () => {
    const key = freshKey();
    const writer = await hold(key);
    await release(writer);
    const readers = [await hold(key, SHARED), await hold(key, SHARED), await hold(key, SHARED)];
    const tokens = readers.map(({ body }) => body.fencingToken as number);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(readers.map(({ body }) => [body.mode, body.fenceFloor])).toEqual(Array(3).fill(["shared", tokens[0]]));
    expect(tokens[0]).toBeGreaterThan(writer.body.fencingToken as number);
  });

  it("keeps a writer out until the last reader is gone, and names them", async () => {
    const key = freshKey();
    const readers = [await hold(key, { ...SHARED, owner: "a" }), await hold(key, { ...SHARED, owner: "b" })];
    const refused = await put(key);
    expect(told(refused)).toEqual([423, "locked"]);
    expect(refused.body.holders).toMatchObject([
      { owner: "a", mode: "shared" },
      { owner: "b", mode: "shared" },
    ]);
    expect((await get(`/v1/locks/${key}`)).body).toMatchObject({ mode: "shared", holders: [{ owner: "a" }, { owner: "b" }] });
    await release(readers[0]!);
    expect(told(await put(key))).toEqual([423, "locked"]);
    await release(readers[1]!);
    await hold(key);
    expect(told(await put(key, SHARED))).toEqual([423, "locked"]);
  });
}

/** Upgrade and downgrade. */
export function changesMode({ it }: Suite, { freshKey, get, post, put, hold, release }: Calls): void {
  const change = (lease: { url: string }, mode: string, fencingToken: unknown) => post(`${lease.url}/mode`, { mode, fencingToken });

  it("makes the only reader the writer with a new token, and the writer a reader; again it is 200", async () => {
    const reader = await hold(undefined, SHARED);
    const writer = await change(reader, "exclusive", reader.body.fencingToken);
    expect([writer.status, writer.body.mode]).toEqual([200, "exclusive"]);
    expect(writer.body.fencingToken).toBeGreaterThan(reader.body.fencingToken as number);
    expect(told(await put(reader.key, SHARED))).toEqual([423, "locked"]);
    const again = await change(reader, "exclusive", reader.body.fencingToken);
    expect([again.status, again.body.fencingToken, again.headers["idempotent-replayed"]]).toEqual([200, writer.body.fencingToken, "true"]);
    const down = await change(reader, "shared", writer.body.fencingToken);
    expect([down.status, down.body.mode]).toEqual([200, "shared"]);
    expect(down.body.fencingToken).toBeGreaterThan(writer.body.fencingToken as number);
    await hold(reader.key, SHARED);
  });

  it("refuses a late duplicate by its token: 409 token-mismatch, and nothing changed", async () => {
    const reader = await hold(undefined, SHARED);
    const writer = await change(reader, "exclusive", reader.body.fencingToken);
    await change(reader, "shared", writer.body.fencingToken);
    expect(told(await change(reader, "exclusive", reader.body.fencingToken))).toEqual([409, "token-mismatch"]);
    expect((await get(reader.url)).body.mode).toBe("shared");
  });

  it("waits for other readers with 423, and tells the second who asks 409 upgrade-conflict", async () => {
    const key = freshKey();
    const [first, second] = [await hold(key, SHARED), await hold(key, SHARED)];
    expect(told(await change(first, "exclusive", first.body.fencingToken))).toEqual([423, "locked"]);
    expect(told(await change(second, "exclusive", second.body.fencingToken))).toEqual([409, "upgrade-conflict"]);
    await release(second);
    expect((await change(first, "exclusive", first.body.fencingToken)).body.mode).toBe("exclusive");
  });

  it("of a lease that is over is 410", async () => {
    const reader = await hold(undefined, SHARED);
    await release(reader);
    expect(told(await change(reader, "exclusive", reader.body.fencingToken))).toEqual([410, "lease-lost"]);
  });
}
