/** Readers and writers over HTTP: one key in both modes, and changes between them. */
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

const SHARED = { mode: "shared", leaseMs: 20_000 };

/** Upgrade and downgrade. */
export function changesMode({ it }: Suite, { post, put, hold }: Calls): void {
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
}
