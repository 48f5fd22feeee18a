/** Inspecting a key and waiting for a change: `GET /v1/locks/{key}` with `If-None-Match` and `Prefer: wait`. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import type { HttpService } from "../support/http-service.js";
import { serve } from "../support/http-service.js";
import { leaseIdAt } from "../support/lease-ids.js";

/** The time within which a change is noticed. */
const NOTICED_MS = 400;

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

/** A key that is held and was inspected. */
async function seen() {
  const leaseId = leaseIdAt(service.clock.wallMs());
  const key = `WATCHED_${leaseId.slice(-12)}`;
  const url = `/v1/locks/${key}/leases/${leaseId}`;
  expect((await service.send("PUT", url, { body: { leaseMs: 20_000 } })).status).toBe(201);
  const tag = (await service.send("GET", `/v1/locks/${key}`)).headers["etag"] ?? "";
  const look = (headers: Record<string, string>) => service.send("GET", `/v1/locks/${key}`, { headers });
  return { key, url, tag, look, wait: (seconds: number) => look({ "if-none-match": tag, prefer: `wait=${seconds}` }) };
}

describe("a look that waits", () => {
  it("is answered as soon as the holder releases, with another tag", async () => {
    const { url, tag, wait } = await seen();
    const waiting = wait(5);
    await service.clock.passWaiting(2_000);
    await service.send("DELETE", url);
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect([answer.status, answer.body.holders, answer.headers["etag"] === tag]).toEqual([200, [], false]);
    expect(passedMs).toBeLessThanOrEqual(NOTICED_MS);
  });

  it.each([
    [0, 0],
    [2, 2_000],
    [60, LIMITS.serverWaitMs],
  ])("(%i s) is told 304 after %i ms when nothing came, heartbeats aside", async (seconds, waitedMs) => {
    const { url, tag, wait } = await seen();
    const waiting = wait(seconds);
    if (waitedMs > 0) await service.clock.passWaiting(1_000);
    if (waitedMs > 0) await service.send("POST", `${url}/renew`);
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect([answer.status, answer.text, answer.headers["etag"]]).toEqual([304, "", tag]);
    expect(passedMs).toBe(Math.max(0, waitedMs - 1_000));
  });

  it("does not wait without a tag, nor with one of another time", async () => {
    const { look } = await seen();
    for (const headers of [{}, { "if-none-match": '"another"' }] as Record<string, string>[]) {
      const { answer, passedMs } = await service.clock.passUntil(look({ ...headers, prefer: "wait=5" }));
      expect([answer.status, passedMs]).toEqual([200, 0]);
    }
  });
});
