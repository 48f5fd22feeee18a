/** The agent as the table's stream invokes it: on an engine's own stream, with the filter of the deployed mapping. */
import type { DynamoDBRecord } from "aws-lambda";
import { UpdateTableCommand, DescribeTableCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, expect, it } from "vitest";
import { OFFERED } from "../../infra/waking.js";
import { composeAgent } from "../../lambda/agent.js";
import { systemClock } from "../../lib/core/time.js";
import { ACQUIRE, directService, RENEW } from "../support/direct-service.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { createSleeperStore } from "../../lib/store/dynamo/sleeper-store.js";
import type { Sleeper } from "../../lib/store/port.js";
import { createPolicy } from "../../lib/core/policy.js";
import { oneClock } from "../../lib/service/clocks.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { engineCalls, freshTable } from "../support/engine.js";
import { type WakeTargets, startWakeTargets } from "../support/wake-targets.js";

const LEASE_MS = 180_000;
const ADDRESS = { namespace: "default", kind: "locks", key: "ORDER_1" } as const;

let targets: WakeTargets;
beforeAll(async () => void (targets = await startWakeTargets()));
afterAll(() => targets.close());

/** True if the mapping's filter lets a record through, which is all that it looks at. */
function passes({ dynamodb }: DynamoDBRecord): boolean {
  expect(OFFERED).toEqual({ dynamodb: { NewImage: { dl: { S: [{ exists: true }] } } } });
  return dynamodb?.NewImage?.["dl"]?.S !== undefined;
}

/** A service on a table with a stream of new images, and what the stream has. */
async function streamed() {
  const { tableName, client, endpoint, env } = await freshTable();
  const StreamSpecification = { StreamEnabled: true, StreamViewType: "NEW_IMAGE" } as const;
  await client.send(new UpdateTableCommand({ TableName: tableName, StreamSpecification }));
  const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
  client.destroy();
  const call = async (operation: string, body: object): Promise<Record<string, unknown>> => {
    const authorization =
      "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0";
    const headers = {
      ...{ "content-type": "application/x-amz-json-1.0", "x-amz-target": `DynamoDBStreams_20120810.${operation}` },
      ...{ authorization, "x-amz-date": "20260101T000000Z" },
    };
    const reply = await fetch(endpoint, { method: "POST", headers, body: JSON.stringify(body) });
    return (await reply.json()) as Record<string, unknown>;
  };
  const StreamArn = Table!.LatestStreamArn!;
  async function records(): Promise<readonly DynamoDBRecord[]> {
    const { StreamDescription } = await call("DescribeStream", { StreamArn });
    const found = [];
    for (const { ShardId } of (StreamDescription as { Shards: { ShardId: string }[] }).Shards) {
      const { ShardIterator } = await call("GetShardIterator", { StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" });
      const { Records } = await call("GetRecords", { ShardIterator });
      found.push(...(Records as DynamoDBRecord[]));
    }
    return found;
  }
  const clock = new VirtualClock();
  await clock.advance(systemClock.wallMs() - clock.wallMs());
  const place = { calls: engineCalls(endpoint), tableName, region: async () => "us-east-1" };
  const store = createDynamoStore({ ...place, policy: createPolicy(), clock, random: () => 0 });
  const sleepers = createSleeperStore(place);
  const service = directService({ clock, store, sleepers });
  return { service, store, sleepers, records, env: { ...env, ...targets.env, HOLDFAST_TABLE: tableName } };
}

it("hears of a release straight on the table, and of no heartbeat, and wakes the sleeper in whichever Region of the table it waits", async () => {
  const { service, store, records, env } = await streamed();
  const [a, b] = [service.newId(), service.newId()];
  const leaseMs = LEASE_MS;
  await service.ask(ACQUIRE, { leaseId: a, body: { leaseMs } });
  const wake = { taskToken: targets.wait("token-stream", "us-east-2") };
  await service.ask(ACQUIRE, { leaseId: b, headers: { prefer: "wait=3600" }, body: { leaseMs, wake } });
  for (let beat = 0; beat < 5; beat++) expect((await service.ask(RENEW, { leaseId: a })).status).toBe(200);
  const before = await records();
  expect(before.length).toBeGreaterThan(5);
  expect(before.filter(passes)).toEqual([]);

  const principal = Object.values((await store.read(ADDRESS))!.holds)[0]!.principal;
  await store.apply(ADDRESS, { type: "release", key: "ORDER_1", leaseId: a, principal }, oneClock(service.clock));
  const offered = (await records()).filter(passes);
  expect(offered).toHaveLength(1);
  const agent = composeAgent({ ...env, HOLDFAST_REGIONS: "us-east-1,us-east-2" }, { log: () => undefined });
  expect(await agent({ Records: offered })).toEqual({ batchItemFailures: [] });
  expect(targets.heard.get("token-stream")).toHaveProperty("got.leaseId", b);
  expect(await agent()).toEqual({});
});

it("names a record whose key it couldn't read, and leaves out records of other items", async () => {
  const { env } = await streamed();
  const failures: unknown[] = [];
  const agent = composeAgent({ ...env, HOLDFAST_TABLE: "none" }, { log: () => undefined, onFailure: (error) => void failures.push(error) });
  const record = (p: string, SequenceNumber: string) => ({ dynamodb: { Keys: { p: { S: p }, k: { S: "ORDER_1" } }, SequenceNumber } });
  const Records = [record("default/locks/1", "1"), record("/sleepers", "2"), record("default/runs/1", "3")];
  expect(await agent({ Records })).toEqual({ batchItemFailures: [{ itemIdentifier: "1" }] });
  expect(failures).toHaveLength(1);
});

it("fails as a function if a sleeper had to be left to the next sweep", async () => {
  const { service, env } = await streamed();
  const leaseId = service.newId();
  const body = { leaseMs: LEASE_MS, wake: { taskToken: targets.wait("token-throttled") } };
  await service.ask(ACQUIRE, { leaseId, headers: { prefer: "wait=3600" }, body });
  targets.throttle(1);
  const agent = composeAgent(env, { log: () => undefined, print: () => undefined, onFailure: () => undefined });
  await expect(agent()).rejects.toThrow("sleepers left to the next sweep: 1");
});

it("goes on where a sweep had no time left, and fails as a function", async () => {
  const { sleepers, env } = await streamed();
  const acquire = { type: "acquire", leaseId: "a", principal: "p", requestHash: "h" } as Sleeper["acquire"];
  const put = (key: number) =>
    sleepers.put({ address: { ...ADDRESS, key: `KEY_${key}` }, acquire, targets: [{}], putAtMs: 1, untilMs: 1e15, ttlAtSec: 1e10 });
  await Promise.all(Array.from({ length: 101 }, (_, key) => put(key)));
  let slowMs = 1000;
  let nowMs = 0;
  const tell = async () => (await Promise.resolve(), (nowMs += slowMs), Promise.reject(new Error("no answer")));
  const parts = { log: () => undefined, print: () => undefined, onFailure: () => undefined, tell };
  const agent = composeAgent(env, { ...parts, clock: { ...systemClock, monotonicMs: () => nowMs } });
  await expect(agent(), "a page, and that there are more").rejects.toThrow("sleepers left to the next sweep: 101");
  await expect(agent(), "the rest").rejects.toThrow("sleepers left to the next sweep: 1");
  slowMs = 0;
  await expect(agent(), "all").rejects.toThrow("sleepers left to the next sweep: 101");
});
