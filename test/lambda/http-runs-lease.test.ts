/** The lease of a run over HTTP: renewed with a checkpoint, checked, and cancelled. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { runsOf, told } from "./runs.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const runs = runsOf(() => service, "JOB");

const renew = (url: string, body?: object) => service.send("POST", `${url}/renew`, { ...(body && { body }) });
const FAILED = { state: "failed", error: "again", retryable: true };

describe("a renewal", () => {
  it("lengthens the lease: 200, the same token; never shorter, even when asked for less", async () => {
    const { url, reply } = await runs.begin(undefined, { body: { leaseMs: 10_000, owner: "billing-3" } });
    await service.clock.advance(4_000);
    const renewed = await renew(url);
    const { state: _state, attempt: _attempt, takeover: _takeover, ...lease } = reply.body as Record<string, unknown>;
    expect([renewed.status, renewed.headers["etag"]]).toEqual([200, `"v${renewed.body.version}"`]);
    expect(renewed.body).toEqual({ ...lease, serverTimeMs: service.clock.wallMs(), version: renewed.body.version });
    expect(renewed.body.version).toBeGreaterThan(reply.body.version);
    expect((await renew(url, { leaseMs: 60_000 })).body).toMatchObject({ leaseMs: 60_000, remainingMs: 60_000 });
    const shorter = await renew(url, { leaseMs: 1_000 });
    expect([shorter.status, shorter.body.remainingMs]).toEqual([200, 60_000]);
  });

  it("keeps others out for as long as it goes on", async () => {
    const { key, url } = await runs.begin(undefined, { body: { leaseMs: 10_000 } });
    for (let beat = 0; beat < 4; beat++) {
      await service.clock.advance(9_999);
      expect((await renew(url)).status).toBe(200);
    }
    expect((await runs.ask(key)).body.retryAfterMs).toBe(10_000 + takeoverMarginMs(10_000));
  });
});

describe("a checkpoint", () => {
  it.each([[{ step: 3 }], [null], [0], [""], [[]], ["x".repeat(LIMITS.checkpointBytes - 2)]])(
    "is told to the same start again, to who looks, and to the next attempt (%j)",
    async (checkpoint) => {
      const { key, url } = await runs.begin();
      expect((await renew(url, { checkpoint })).status).toBe(200);
      for (const reply of [await service.send("PUT", url), await runs.look(key)]) expect(reply.body.checkpoint).toEqual(checkpoint);
      await runs.complete(url, FAILED);
      expect((await runs.begin(key)).reply.body).toMatchObject({ attempt: 2, checkpoint });
    },
  );

  it("is there after a takeover, is left alone by a heartbeat without one, and is followed by the next", async () => {
    const { key, url, reply } = await runs.begin(undefined, { body: { leaseMs: 10_000 } });
    expect(reply.body).not.toHaveProperty("checkpoint");
    await renew(url, { checkpoint: 1 });
    await renew(url);
    await service.clock.advance(10_000 + takeoverMarginMs(10_000));
    const next = await runs.begin(key, { body: { leaseMs: 10_000 } });
    expect(next.reply.body).toMatchObject({ takeover: true, checkpoint: 1 });
    await renew(next.url, { checkpoint: 2 });
    await service.clock.advance(10_000 + takeoverMarginMs(10_000));
    expect((await runs.begin(key)).reply.body).toMatchObject({ takeover: true, attempt: 3, checkpoint: 2 });
  });

  it("is nobody's any more once the work is over", async () => {
    const { key, url } = await runs.begin();
    await renew(url, { checkpoint: 1 });
    await runs.complete(url, { state: "succeeded" });
    for (const reply of [await runs.ask(key), await runs.look(key)]) expect(reply.body).not.toHaveProperty("checkpoint");
  });

  it.each([
    ["a byte too large", "x".repeat(LIMITS.checkpointBytes - 1), 413, "checkpoint"],
    ["a byte too large, in bytes", "é".repeat(LIMITS.checkpointBytes / 2), 413, "checkpoint"],
    ["larger than any body", "x".repeat(LIMITS.bodyBytes), 413, undefined],
  ])("%s is %s %s; the lease is as it was, and so is the checkpoint", async (_what, checkpoint, status, field) => {
    const { url } = await runs.begin();
    await renew(url, { checkpoint: "before" });
    await service.clock.advance(1_000);
    const reply = await renew(url, { checkpoint });
    expect([...told(reply), reply.body.field]).toEqual([status, "too-large", field]);
    const { body } = await service.send("PUT", url);
    expect([body.checkpoint, body.remainingMs]).toEqual(["before", 29_000]);
  });

  it("nested too deep is 400", async () => {
    const { url } = await runs.begin();
    const reply = await service.send("POST", `${url}/renew`, { body: `{"checkpoint":${"[".repeat(101)}${"]".repeat(101)}}` });
    expect([...told(reply), reply.body.field]).toEqual([400, "invalid-request", "checkpoint"]);
  });

  it.each([
    ["small", 1],
    ["large", "x".repeat(5_000)],
  ])("from who was taken over is 410, and the next attempt's stays (%s)", async (_what, checkpoint) => {
    const { key, url } = await runs.begin(undefined, { body: { leaseMs: 10_000 } });
    await service.clock.advance(10_000 + takeoverMarginMs(10_000));
    const next = await runs.begin(key);
    await renew(next.url, { checkpoint: "mine" });
    const late = await renew(url, { checkpoint });
    expect([...told(late), late.body.reason]).toEqual([410, "lease-lost", "taken"]);
    expect((await runs.look(key)).body.checkpoint).toBe("mine");
    // Control: the lease was the reason for the refusal, not the checkpoint.
    expect((await renew(next.url, { checkpoint })).status).toBe(200);
    expect((await runs.look(key)).body.checkpoint).toBe(checkpoint);
  });
});

describe("still mine?", () => {
  it("is answered with the lease and its ETag, and with 410 once it is over", async () => {
    const { url, reply } = await runs.begin();
    await service.clock.advance(1_000);
    const mine = await service.send("GET", url);
    const { state: _state, attempt: _attempt, takeover: _takeover, ...lease } = reply.body as Record<string, unknown>;
    expect([mine.status, mine.headers["etag"]]).toEqual([200, reply.headers["etag"]]);
    expect(mine.body).toEqual({ ...lease, remainingMs: 29_000, serverTimeMs: service.clock.wallMs() });
    await runs.complete(url, { state: "succeeded" });
    const over = await service.send("GET", url);
    expect([...told(over), over.body.reason, over.body.instance]).toEqual([410, "lease-lost", "released", url.replace(/\/leases.*/, "")]);
    expect((await service.send("GET", runs.url(runs.freshKey()))).body.reason).toBe("never");
  });
});

describe("a start that is given up", () => {
  const giveUp = async (url: string): Promise<unknown> => {
    const { status, headers, text } = await service.send("DELETE", url);
    expect([status, text]).toEqual([204, ""]);
    return headers["lease-state"];
  };

  it("is as if it had not been: 204 released, again and again, and the next is a first attempt", async () => {
    const { key, url, reply } = await runs.begin(undefined, { body: { maxAttempts: 1, fingerprint: "f" } });
    for (const _time of [1, 2]) expect(await giveUp(url)).toBe("released");
    expect(told(await runs.look(key))).toEqual([404, "not-found"]);
    expect(told(await service.send("PUT", url, { body: { maxAttempts: 1, fingerprint: "f" } }))).toEqual([410, "lease-over"]);
    const next = await runs.begin(key, { body: { maxAttempts: 1, fingerprint: "g" } });
    expect(next.reply.body).toMatchObject({ attempt: 1, takeover: false });
    expect(next.reply.body.fencingToken).toBeGreaterThan(reply.body.fencingToken);
  });

  it("as a second attempt leaves the first as it ended: failed", async () => {
    const key = await runs.finished(FAILED);
    expect(await giveUp((await runs.begin(key)).url)).toBe("released");
    expect((await runs.look(key)).body).toMatchObject({ state: "failed", error: "again", retryable: true, attempt: 1 });
    expect((await runs.begin(key, { body: { maxAttempts: 2 } })).reply.body).toMatchObject({ attempt: 2, takeover: false });
  });

  it("as a takeover leaves the first as it ended: nobody knows how", async () => {
    const { key, url } = await runs.begin(undefined, { body: { leaseMs: 10_000 } });
    await renew(url, { checkpoint: 1 });
    await service.clock.advance(10_000 + takeoverMarginMs(10_000));
    expect(await giveUp((await runs.begin(key)).url)).toBe("released");
    expect((await runs.look(key)).body).toMatchObject({ state: "interrupted", attempt: 1, checkpoint: 1 });
    expect((await runs.begin(key, { body: { maxAttempts: 2 } })).reply.body).toMatchObject({ attempt: 2, takeover: true, checkpoint: 1 });
  });

  it("before it arrives is refused when it does: 204 never, then 410", async () => {
    const url = runs.url(runs.freshKey());
    expect(await giveUp(url)).toBe("never");
    expect(told(await service.send("PUT", url))).toEqual([410, "lease-over"]);
  });

  it("after its outcome changes nothing: 204 released, and the outcome is told", async () => {
    const { key, url } = await runs.begin();
    await runs.complete(url, { state: "succeeded", result: 1 });
    expect(await giveUp(url)).toBe("released");
    expect((await runs.ask(key)).body.result).toBe(1);
  });

  it("beside the one that runs leaves that one alone", async () => {
    const { key, url } = await runs.begin();
    expect(await giveUp(runs.url(key))).toBe("never");
    expect((await service.send("GET", url)).status).toBe(200);
  });
});
