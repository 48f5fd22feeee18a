/** Requests to wait asleep, over the handler: what they store and answer. Which are refused, those to tie a lease among them. */
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import { createMemorySleepers } from "../../lib/testing/memory-sleepers.js";
import type { SleeperStore } from "../../lib/store/port.js";
import { type DirectService, ACQUIRE, CHECK, directService, RELEASE } from "../support/direct-service.js";
import { BOB } from "../support/http-event.js";

const HOUR = { prefer: "wait=3600" };
const TOKEN = "AQCEAAAAKgAAAAMAAAAAAAAAAf~_-";
const CALLBACK_ID = "QVJOOmFybi8xMjM0NTY3OA+/==";
const MACHINE = "arn:aws:states:us-east-1:111122223333:execution:orders:";
const DURABLE = "arn:aws:lambda:us-east-1:111122223333:function:orders:$LATEST/durable-execution/";
const INSPECT = "GET /v1/locks/{key}";

function withAgent(): DirectService & { readonly sleepers: SleeperStore } {
  const sleepers = createMemorySleepers();
  return { ...directService({ sleepers }), sleepers };
}

describe("an acquire with a target to wake", () => {
  it("waits asleep behind a holder, and is stored with its whole acquire", async () => {
    const service = withAgent();
    await service.ask(ACQUIRE, { leaseId: service.newId() });
    const leaseId = service.newId();
    const meta = { order: 7 };
    const body = { leaseMs: 180_000, owner: "checkout", meta, wake: { callbackId: CALLBACK_ID } };
    const reply = await service.ask(ACQUIRE, { leaseId, headers: HOUR, body });
    expect([reply.status, reply.body]).toEqual([202, { state: "asleep", position: 1 }]);
    expect(reply.headers).not.toHaveProperty("retry-after");
    const { sleepers } = await service.sleepers.list();
    expect(sleepers).toMatchObject([
      {
        address: { namespace: "default", kind: "locks", key: "ORDER_1" },
        acquire: { leaseId, leaseMs: 180_000, owner: "checkout", meta },
        targets: [{ callbackId: CALLBACK_ID }],
        untilMs: service.clock.wallMs() + 3_600_000,
        ttlAtSec: service.clock.wallMs() / 1000 + 3600 + 24 * 3600,
      },
    ]);
    expect(sleepers[0]!.acquire).not.toHaveProperty("wait");
    expect((await service.ask(INSPECT)).body.waiters).toMatchObject([{ owner: "checkout", asleep: true, position: 1 }]);
  });

  it("isn't granted a free key, takes each target, and says what a lease that holds says", async () => {
    const service = withAgent();
    const leaseId = service.newId();
    for (const token of [TOKEN, `${TOKEN}2`]) {
      const reply = await service.ask(ACQUIRE, { leaseId, headers: { ...HOUR, "holdfast-task-token": token } });
      expect([reply.status, reply.body]).toEqual([202, { state: "asleep", position: 1 }]);
    }
    expect((await service.sleepers.list()).sleepers).toMatchObject([{ targets: [{ taskToken: TOKEN }, { taskToken: `${TOKEN}2` }] }]);
    expect((await service.ask(ACQUIRE, { leaseId })).status).toBe(201);
    expect((await service.ask(ACQUIRE, { leaseId, headers: HOUR, body: { wake: { taskToken: TOKEN } } })).status).toBe(200);
  });

  it("isn't queued if its target can't be stored: somebody else's id, other parameters, or more targets than are kept", async () => {
    const service = withAgent();
    await service.ask(ACQUIRE, { leaseId: service.newId() });
    const leaseId = service.newId();
    const sleep = (taskToken: string, more: object = {}, authorizer?: object) =>
      service.ask(ACQUIRE, {
        ...{ leaseId, headers: HOUR, body: { leaseMs: 180_000, wake: { taskToken }, ...more } },
        ...(authorizer && { authorizer }),
      });
    expect((await sleep(`${TOKEN}0`)).status).toBe(202);
    // As if the acquire of the first request hadn't come to the record yet.
    await service.ask(RELEASE, { leaseId: (await service.sleepers.list()).sleepers[0]!.acquire.leaseId });
    expect((await sleep("token-of-bob", {}, BOB)).body).toMatchObject({ status: 403, code: "forbidden" });
    expect((await sleep(`${TOKEN}0`, { leaseMs: 190_000 })).body).toMatchObject({
      ...{ status: 422, code: "lease-reused", detail: expect.stringMatching(/^This leaseId sleeps with other parameters: /) },
    });
    for (let more = 1; more < LIMITS.targetsMax; more++) expect((await sleep(`${TOKEN}${more}`)).status).toBe(410);
    expect((await sleep(`${TOKEN}${LIMITS.targetsMax}`)).body).toMatchObject({
      status: 422,
      detail: expect.stringMatching(/^This leaseId has 20 targets already: /),
    });
    expect((await sleep(`${TOKEN}0`)).status).toBe(410);
    expect((await service.ask(INSPECT)).body.waiters).toEqual([]);
  });

  it("is cancelled by its release", async () => {
    const service = withAgent();
    await service.ask(ACQUIRE, { leaseId: service.newId() });
    const leaseId = service.newId();
    await service.ask(ACQUIRE, { leaseId, headers: HOUR, body: { wake: { taskToken: TOKEN } } });
    expect((await service.ask(CHECK, { leaseId })).status).toBe(202);
    expect((await service.ask(RELEASE, { leaseId })).status).toBe(204);
    expect((await service.ask(INSPECT)).body.waiters).toEqual([]);
  });
});

describe("an acquire that the agent can't serve", () => {
  const wake = { taskToken: TOKEN };
  const tie = { executionArn: `${MACHINE}e` };
  const tied = (more: object) => ({ leaseMs: 180_000, tie, ...more });
  const tiedTo = (executionArn: string) => tied({ tie: { executionArn } });
  const [ARN, KIND] = ["tie.executionArn", /execution, standard or durable/] as const;
  it.each<[string, object, object, field: string, rule: RegExp]>([
    ["without a wait", { wake }, {}, "wake", /needs Prefer: wait=N, with N from 1 to 31536000; there is none/],
    ["with a wait of 0 s", { wake }, { prefer: "wait=0" }, "wake", /N is 0/],
    ["with a wait of more than a year", { wake }, { prefer: "wait=31536001" }, "wake", /N is 31536001/],
    ["without a token or an id", { wake: {} }, HOUR, "wake", /needs a taskToken or a callbackId, and not both/],
    ["with both", { wake: { ...wake, callbackId: CALLBACK_ID } }, HOUR, "wake", /needs a taskToken or a callbackId, and not both/],
    ["with a URL", { wake: { url: "https://x" } }, HOUR, "wake.url", /is not a field of this request/],
    ["with a token that has a space", { wake: { taskToken: "a b" } }, HOUR, "wake.taskToken", /1 to 2048 printable characters/],
    ["with a long token", { wake: { taskToken: "x".repeat(2049) } }, HOUR, "wake.taskToken", /1 to 2048 printable/],
    ["with an id that isn't base64", { wake: { callbackId: "a_b" } }, HOUR, "wake.callbackId", /1 to 1024 characters in base64/],
    ["with a long id", { wake: { callbackId: "x".repeat(1025) } }, HOUR, "wake.callbackId", /1 to 1024 characters in base64/],
    ["with a header that is no token", {}, { ...HOUR, "holdfast-task-token": "" }, "holdfast-task-token", /1 to 2048 printable/],
    ["with a tie and too short a lease", tied({ leaseMs: 179_999 }), {}, "leaseMs", /at least 180000 with a tie; it is 179999/],
    ["with a tie and the lease's default length", { tie }, {}, "leaseMs", /it is 30000/],
    ["with a tie without an execution", tied({ tie: {} }), {}, ARN, /is required/],
    ["with a tie to an Express workflow", tiedTo(`${MACHINE.replace("execution", "express")}e:1`), {}, ARN, KIND],
    ["with a tie to a function", tiedTo(DURABLE.replace(/\/.*/, "")), {}, ARN, KIND],
    ["with a tie to another path", tiedTo(`${DURABLE}a/b?c`), {}, ARN, /must be the ARN/],
    ["with a tie to a long ARN", tiedTo(MACHINE + "x".repeat(1024)), {}, ARN, /at most 1024 characters/],
  ])("is refused %s", async (_how, body, headers, field, rule) => {
    const service = withAgent();
    const reply = await service.ask(ACQUIRE, { leaseId: service.newId(), body, headers: { ...headers } });
    expect([reply.status, reply.body.code, reply.body.field]).toEqual([400, "invalid-request", field]);
    expect(reply.body.detail).toMatch(rule);
    const { sleepers, ties } = await service.sleepers.list();
    expect([sleepers, ties, (await service.ask(INSPECT)).body.waiters]).toEqual([[], [], []]);
  });

  it.each<[field: string, headers: Readonly<Record<string, string>>, more: object]>([
    ["wake", HOUR, { wake }],
    ["tie", {}, tied({})],
  ])("is refused by a service without an agent, and by the other operations: %s", async (field, headers, more) => {
    const service = directService();
    const leaseId = service.newId();
    const reply = await service.ask(ACQUIRE, { leaseId, headers, body: more });
    expect([reply.status, reply.body.field]).toEqual([400, field]);
    expect(reply.body.detail).toMatch(/this service has no agent that wakes sleepers/);
    const set = await service.ask("PUT /v1/lock-sets/{leaseId}", { leaseId, headers, body: { keys: ["a"], ...more } });
    expect([set.status, set.body.field]).toEqual([400, field]);
  });
});
