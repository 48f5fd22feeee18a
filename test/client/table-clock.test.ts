/** Directly on the table, the second clock comes from DynamoDB's responses, so every client must observe them. */
import { ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { expect, it } from "vitest";
import { systemClock } from "../../lib/core/time.js";
import type { LockClient } from "../../lib/dynamodb.js";
import { createLockClient } from "../../lib/dynamodb.js";
import { watchTableClock } from "../../lib/store/dynamo/table-clock.js";
import { VirtualClock } from "../../lib/testing.js";
import { freshTable } from "../support/engine.js";

it("lock clients that share a DynamoDB client all know the table's time", async () => {
  const { client } = await freshTable();
  const times = [
    watchTableClock(client, systemClock),
    watchTableClock(client, new VirtualClock(systemClock.wallMs())),
    watchTableClock(client, systemClock),
  ];
  expect(times.map((time) => time())).toEqual([undefined, undefined, undefined]);
  await client.send(new ListTablesCommand({}));
  for (const time of times) {
    const { lowMs, highMs } = time()!;
    expect(lowMs).toBeLessThanOrEqual(highMs);
    expect(Math.abs(lowMs - systemClock.wallMs())).toBeLessThan(10_000);
  }
  client.destroy();
});

it("one that is made late knows at once what the others heard", async () => {
  const { client } = await freshTable();
  watchTableClock(client, systemClock);
  await client.send(new ListTablesCommand({}));
  expect(watchTableClock(client, systemClock)()).toBeDefined();
  client.destroy();
});

it("document clients of one DynamoDB client share what it hears, and it hears once", async () => {
  const { client, tableName } = await freshTable();
  const before = client.middlewareStack.identify().length;
  const [one, other] = [1, 2].map(() => createLockClient({ client: DynamoDBDocumentClient.from(client), tableName })) as [
    LockClient,
    LockClient,
  ];
  expect(client.middlewareStack.identify()).toHaveLength(before + 1);
  const lease = await one.acquire("ORDER_1231");
  expect(await other.tryAcquire("ORDER_1231")).toBeNull();
  await lease.release();
  client.destroy();
});
