/** Holds that were transferred or broken. Regressions: new reentrant holds outlasted an operator's break, and a transfer bound nobody. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { kindsOn, told } from "../lambda/kinds.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";

const LEASE_MS = 20_000;
const SCOPE = "trace-4bf92f3577b34da6a3ce929d0e0e4736";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { freshKey, newId, put, post } = kindsOn(() => service, "HOLD");

describe("a hold that an operator broke", () => {
  it.each([
    ["gently", undefined],
    ["by force, with time to drain", 5_000],
  ])("%s takes no new level of its scope: it is over when the operator was told", async (_how, drainMs) => {
    const key = freshKey();
    const outer = await put(key, { scope: SCOPE, leaseMs: LEASE_MS });
    const order = { reason: "stuck", fencingToken: outer.body.fencingToken, ...(drainMs !== undefined && { drainMs }) };
    const { breakInMs } = (await post(`/v1/locks/${key}/break`, order)).body;
    await service.clock.advance(1_000);
    const inner = await put(key, { scope: SCOPE, leaseMs: LEASE_MS });
    expect([inner.status, (await post(`${inner.url}/renew`)).status]).toEqual([423, 410]);
    await service.clock.advance(breakInMs - 1_000);
    expect((await put(key)).status).toBe(201);
  });

  it("control: without a level that came later it is over in time", async () => {
    const key = freshKey();
    const outer = await put(key, { scope: SCOPE, leaseMs: LEASE_MS });
    const { breakInMs } = (await post(`/v1/locks/${key}/break`, { reason: "stuck", fencingToken: outer.body.fencingToken })).body;
    expect(breakInMs).toBe(LEASE_MS + takeoverMarginMs(LEASE_MS));
    await service.clock.advance(breakInMs);
    expect((await put(key)).status).toBe(201);
  });
});

describe("a hold that was handed on", () => {
  it("belongs to its first caller also when that changes its mode", async () => {
    const reader = await put(freshKey(), { mode: "shared" });
    const leaseId = newId();
    const { body } = await post(`${reader.url}/transfer`, { leaseId });
    const url = `/v1/locks/${reader.key}/leases/${leaseId}`;
    expect((await post(`${url}/mode`, { mode: "exclusive", fencingToken: body.fencingToken }, "worker")).status).toBe(200);
    expect(told(await post(`${url}/renew`))).toEqual([403, "forbidden"]);
    expect((await post(`${url}/renew`, {}, "worker")).status).toBe(200);
  });
});
