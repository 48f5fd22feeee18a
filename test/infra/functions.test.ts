/** The three functions and their roles: their rights on the table, and the limits that protect holders from a crowd. */
import type { Template } from "aws-cdk-lib/assertions";
import { describe, expect, it } from "vitest";
import { type Duty, DUTIES } from "../../lib/contract/routes.js";
import type { LockServiceProps } from "../../infra/props.js";
import { type Environment, compose } from "../../lambda/compose.js";
import { LIMITS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { Timer } from "../../lib/core/time.js";
import { createMemoryStore } from "../support/memory-store.js";
import { TABLE_CALLS } from "../../lib/store/dynamo/http-sender.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { ACQUIRE, START } from "../support/direct-service.js";
import { httpEvent } from "../support/http-event.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { all, functionOf, only, statementsOf } from "./resources.js";
import { devTemplate, synthesizeOwn } from "./synthesize.js";

/** A call to the table after a wait, with a response to its second attempt. */
const ANSWER_MS = 2 * TABLE_CALLS.requestHandler.requestTimeout;
/** The time for which an HTTP API waits for a function. */
const GATEWAY_TIMEOUT_MS = 30_000;

const INSPECT = "GET /v1/locks/{key}";

const template = devTemplate();
const traced = synthesizeOwn(() => ({ tracing: true }));
const DUTY_NAMES = [...new Set(Object.values(DUTIES))];

function roleOf(made: Template, duty: Duty) {
  const { Role } = functionOf(made, duty)[1].Properties as { Role: { "Fn::GetAtt": [string, string] } };
  return all(made, "AWS::IAM::Role").find(([id]) => id === Role["Fn::GetAtt"][0])![1];
}

describe("each function", () => {
  it.each(DUTY_NAMES)("%s has time for a request that waits as long as one may, and for what it does before and after", (duty) => {
    const timeoutMs = 1_000 * (functionOf(template, duty)[1].Properties.Timeout as number);
    expect(timeoutMs).toBeGreaterThanOrEqual(LIMITS.serverWaitMs + ANSWER_MS);
    expect(timeoutMs).toBeLessThan(GATEWAY_TIMEOUT_MS);
  });
});

/** A stopped clock that counts the requests waiting on it. */
class CountingClock extends VirtualClock {
  pauses = 0;

  override after(delayMs: number, task: () => void): Timer {
    this.pauses++;
    return super.after(delayMs, task);
  }
}

describe("requests that would wait", () => {
  const WAITERS = 200;
  const WAIT = { prefer: "wait=5" };

  /**
   * Two hundred waiters for one run, for a lock each, and for a change of a key each. Returns their responses, and the
   * number of pauses.
   */
  async function crowdBefore(made: Template) {
    const clock = new CountingClock();
    const { Variables } = functionOf(made, "acquire")[1].Properties.Environment as { Variables: Environment };
    const handler = compose(Variables, { store: createMemoryStore({ policy: createPolicy(), clock }), clock, log: () => undefined });
    const ask = (routeKey: string, key: string, headers: Readonly<Record<string, string>> = {}) =>
      handler(httpEvent(routeKey, { key, leaseId: leaseIdAt(clock.wallMs()), headers, timeEpoch: clock.wallMs() }));
    const keys = Array.from({ length: WAITERS }, (_, index) => `ORDER_${index}`);
    await ask(START, "REFUND");
    for (const key of keys) await ask(ACQUIRE, key);
    const crowd = keys.flatMap((key) => [
      ask(START, "REFUND", WAIT),
      ask(ACQUIRE, key, WAIT),
      ask(INSPECT, key, { ...WAIT, "if-none-match": "*" }),
    ]);
    const answers = await clock.settle(Promise.all(crowd));
    return { statuses: new Set(answers.map(({ statusCode }) => statusCode)), pauses: clock.pauses };
  }

  it("never occupy a function by default: two hundred of each kind are told at once when to come again", async () => {
    expect(await crowdBefore(template)).toEqual({ statuses: new Set([202, 304, 409]), pauses: 0 });
  });

  it.each<[why: string, props: LockServiceProps]>([
    ["holders have executions of their own", { reservedConcurrency: { hold: 20 } }],
    ["those who acquire have no more than theirs", { reservedConcurrency: { acquire: 100 } }],
    ["one asks for it", { serverWaitMs: 2_000 }],
  ])("are held where %s", async (_why, props) => {
    expect((await crowdBefore(synthesizeOwn(() => props))).pauses).toBeGreaterThan(WAITERS);
  });

  it("are held by nobody where one says so, whatever is reserved", async () => {
    expect((await crowdBefore(synthesizeOwn(() => ({ reservedConcurrency: { hold: 20 }, serverWaitMs: 0 })))).pauses).toBe(0);
  });

  it.each([-1, 5_001, 0.5, Number.NaN])("are not held for %d ms: that is no time the function has", (serverWaitMs) => {
    expect(() => synthesizeOwn(() => ({ serverWaitMs }))).toThrow(
      `serverWaitMs: ${serverWaitMs} given; it must be a whole number of ms from 0 to 5000`,
    );
  });
});

describe("a function's role", () => {
  const [tableId] = only(template, "AWS::DynamoDB::Table");
  const toTable = { "Fn::GetAtt": [tableId, "Arn"] };
  const toLog = { "Fn::GetAtt": [expect.stringMatching(/^LocksLog/), "Arn"] };

  it.each<[Duty, string[]]>([
    ["acquire", ["dynamodb:GetItem", "dynamodb:UpdateItem"]],
    ["hold", ["dynamodb:GetItem", "dynamodb:UpdateItem"]],
    ["admin", ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"]],
  ])("%s: %j on the table, lines in the log, traces on request, and nothing else", (duty, actions) => {
    const allowed = [
      { Effect: "Allow", Action: actions, Resource: toTable },
      { Effect: "Allow", Action: ["logs:CreateLogStream", "logs:PutLogEvents"], Resource: toLog },
    ];
    expect(statementsOf(roleOf(template, duty))).toEqual(allowed);
    expect(statementsOf(roleOf(traced, duty)).slice(allowed.length)).toEqual([
      { Effect: "Allow", Action: ["xray:PutTelemetryRecords", "xray:PutTraceSegments"], Resource: "*" },
    ]);
  });
});
