/** Directly on the table, the caller owns the table and sees its errors; over HTTP they stay in the log. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { CreateTableCommand } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../../../lib/core/time.js";
import { createPolicy } from "../../../lib/core/policy.js";
import type { LockClient } from "../../../lib/dynamodb.js";
import { createLockClient } from "../../../lib/dynamodb.js";
import { gatewayClocks } from "../../../lib/service/clocks.js";
import type { LogLine } from "../../../lib/service/log.js";
import { lockService } from "../../../lib/service/service.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import type { FreshTable } from "../../support/engine.js";
import { freshTable } from "../../support/engine.js";

const NO_TABLE = "nothing-here";
const SAID = "ResourceNotFoundException";

let table: FreshTable;
beforeAll(async () => {
  table = await freshTable();
});
afterAll(() => table.client.destroy());

it.each<[what: string, ask: (locks: LockClient) => Promise<unknown>]>([
  ["an acquire", (locks) => locks.tryAcquire("ORDER_1")],
  ["a set", (locks) => locks.tryAcquireAll(["ORDER_1", "ORDER_2"])],
  ["a run", (locks) => locks.runOnce("RUN_1", () => "done")],
  ["a look", (locks) => locks.inspect("ORDER_1")],
  ["a list", (locks) => locks.list()],
])("%s on a table that is not there names what the table said", async (_what, ask) => {
  const locks = createLockClient({ ...table.place, tableName: NO_TABLE });
  const error = await ask(locks).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code: "not-configured" });
  expect((error as Error).message).toContain(SAID);
  expect((error as Error).message).toContain(`(there is no table ${NO_TABLE} in ${table.place.region} of`);
});

it("a table with other keys is named, with the keys that it needs", async () => {
  const TableName = "other-keys";
  await table.client.send(
    new CreateTableCommand({
      TableName,
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      BillingMode: "PAY_PER_REQUEST",
    }),
  );
  await expect(createLockClient({ ...table.place, tableName: TableName }).tryAcquire("ORDER_1")).rejects.toMatchObject({
    code: "not-configured",
    message: expect.stringContaining('(the table other-keys must have the partition key "p" and the sort key "k", both strings)') as string,
  });
});

it("control: a service does not say it to its callers, and logs it", async () => {
  const lines: LogLine[] = [];
  const store = createDynamoStore({
    calls: table.calls,
    tableName: NO_TABLE,
    policy: createPolicy(),
    clock: systemClock,
    random: Math.random,
  });
  const caller = { principal: "one", namespace: "one", requestId: "1" };
  const service = lockService(
    { store, log: (line) => lines.push(line), clock: systemClock },
    caller,
    gatewayClocks(systemClock, undefined),
  );
  const answer = await service.inspect({ key: "ORDER_1" }, { attempt: 1 } as never);
  expect(JSON.stringify(answer)).not.toContain(SAID);
  expect(answer).toMatchObject({ ok: false, code: "not-configured" });
  expect(lines.map(({ reason }) => reason)).toEqual([expect.stringContaining(SAID)]);
});
