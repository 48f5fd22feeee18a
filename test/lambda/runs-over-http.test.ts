/** Regressions: runs over HTTP whose answers said less than the record, or something else. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPolicy } from "../../lib/core/policy.js";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { StoreUnavailable } from "../../lib/store/port.js";
import { createMemoryStore } from "../support/memory-store.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { COMPLETE_RUN, directService, INSPECT_RUN, RENEW_RUN, START } from "../support/direct-service.js";
import { BOB } from "../support/http-event.js";
import { type HttpService, serve } from "../support/http-service.js";
import { told } from "../e2e/calls.js";
import { localCalls } from "./local-calls.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { get, start, begin, complete } = localCalls(() => service, "regression");
const LARGE = "x".repeat(5_000);

/** A service whose payloads can't be read on the test's request, and are counted. */
function failing() {
  const clock = new VirtualClock();
  const kept = createMemoryStore({ policy: createPolicy(), clock });
  const at = { payloads: false };
  let stored = 0;
  const store: typeof kept = {
    ...kept,
    async readPayload(address, digest) {
      if (at.payloads) throw new StoreUnavailable("slow down", true, true);
      return kept.readPayload(address, digest);
    },
    async keepPayload(...args) {
      stored++;
      return kept.keepPayload(...args);
    },
  };
  return { ...directService({ clock, store }), at, storedPayloads: () => stored };
}

describe("a start that was granted", () => {
  it("is not told as one that definitely didn't happen when its checkpoint can't be read", async () => {
    const { ask, newId, clock, at } = failing();
    const leaseId = newId();
    await ask(START, { leaseId, body: { leaseMs: 5_000 } });
    await ask(RENEW_RUN, { leaseId, body: { checkpoint: LARGE } });
    await clock.advance(5_000 + takeoverMarginMs(5_000));
    at.payloads = true;
    const { status, body } = await ask(START, { leaseId: newId() });
    at.payloads = false;
    expect((await ask(INSPECT_RUN)).body).toMatchObject({ state: "running", attempt: 2 }); // It did happen.
    expect([status, body.definite, body.retry]).toEqual([503, false, "same"]);
  });
});

it("who waited in vain is told when to come back from now, not from before the wait", async () => {
  const { key } = await begin();
  const { answer } = await service.clock.passUntil(start(key, {}, { prefer: "wait=5" }));
  expect([answer.status, answer.body.retryAfterMs]).toEqual([409, 25_000 + takeoverMarginMs(30_000)]);
});

it("a look waits by a tag that is weak, in a list, or any", async () => {
  const { key } = await begin();
  const look = (headers = {}) => get(`/v1/runs/${key}`, headers);
  const tag = (await look()).headers["etag"] ?? "";
  for (const known of [`W/${tag}`, `"a", ${tag}`, "*"]) {
    const { answer, passedMs } = await service.clock.passUntil(look({ "if-none-match": known, prefer: "wait=2" }));
    expect([answer.status, passedMs]).toEqual([304, 2_000]);
  }
});

it("a start that waited and was answered leaves no refusal in the log", async () => {
  const { ask, newId, clock, lines } = directService();
  const leaseId = newId();
  await ask(START, { leaseId });
  const waiting = ask(START, { leaseId: newId(), headers: { prefer: "wait=5" } });
  await clock.advance(1_000);
  await ask(COMPLETE_RUN, { leaseId, body: { state: "succeeded" } });
  expect((await clock.settle(waiting)).status).toBe(200);
  expect(lines.filter(({ event }) => event === "refused")).toEqual([]);
});

it("a result under 256 KB is recorded, however its text is escaped", async () => {
  const run = await begin();
  const escaped = "\\u0436".repeat(60_000); // 120 KB as UTF-8, 360 KB as Python's json.dumps writes it.
  expect(told(await complete(run, `{"state":"succeeded","result":"${escaped}"}`))).toEqual([200, undefined]);
});

it("what another principal would record is not stored before it is refused", async () => {
  const { ask, newId, storedPayloads } = failing();
  const leaseId = newId();
  await ask(START, { leaseId });
  expect((await ask(COMPLETE_RUN, { leaseId, authorizer: BOB, body: { state: "succeeded", result: LARGE } })).status).toBe(403);
  expect(storedPayloads()).toBe(0);
});

it("a look says that a result is gone, as a start does", async () => {
  const clock = new VirtualClock();
  const kept = createMemoryStore({ policy: createPolicy(), clock });
  const { ask, newId } = directService({ clock, store: { ...kept, readPayload: async () => undefined } });
  const leaseId = newId();
  await ask(START, { leaseId });
  await ask(COMPLETE_RUN, { leaseId, body: { state: "succeeded", result: LARGE } });
  expect((await ask(START, { leaseId: newId() })).body.resultOmitted).toBe(true);
  expect((await ask(INSPECT_RUN)).body.resultOmitted).toBe(true);
});
