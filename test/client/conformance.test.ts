/** The same client, three times: in memory, over HTTP to the real handler, and straight on the table. */
import { startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { createLockClient as createHttpClient } from "../../lib/index.js";
import { createLockClient as createMemoryClient } from "../../lib/testing.js";
import { freshTable } from "../support/engine.js";
import { describeClients } from "./conformance.js";

describeClients("in memory", async () => {
  const { clock, store } = createMemoryClient();
  return {
    client: (options) => createMemoryClient({ ...options, clock, store }),
    passing: (promise) => clock.settle(promise),
    close: async () => undefined,
  };
});

describeClients("over HTTP", async () => {
  const { client, tableName } = await freshTable();
  const gateway = await startGateway({ handler: compose({ HOLDFAST_TABLE: tableName }, { client, log: () => undefined }), port: 0 });
  return {
    client: (options) => createHttpClient({ ...options, url: gateway.url }),
    passing: (promise) => promise,
    async close() {
      await gateway.close();
      client.destroy();
    },
  };
});

describeClients("straight on the table", async () => {
  const { client, tableName } = await freshTable();
  return {
    client: (options) => createTableClient({ ...options, client, tableName }),
    passing: (promise) => promise,
    close: async () => client.destroy(),
  };
});
