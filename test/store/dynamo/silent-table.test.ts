/**
 * A table that takes a request and never answers: the call ends at its bound. The AWS SDK takes `requestTimeout`
 * for a bound only where `throwOnRequestTimeout` says so; without it, it warned after 2 s and waited for as long as the socket lived.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { engineClient } from "../../../infra/local/engine-client.js";
import type { TableCalls } from "../../../lib/store/dynamo/calls.js";
import { sdkCalls } from "../../support/sdk-calls.js";
import { TABLE_CALLS } from "../../../lib/store/dynamo/http-sender.js";
import { A, dynamoStoreOn, Fixture } from "../fixture.js";
import { engineCalls } from "../../support/engine.js";

/** Shorter than the real bound, so that the test is, too. */
const BOUND_MS = 100;
const server = createServer(() => undefined);
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const requestHandler = { ...TABLE_CALLS.requestHandler, requestTimeout: BOUND_MS };

it.each<[transport: string, callsTo: (endpoint: string) => TableCalls]>([
  ["past the SDK", (endpoint) => engineCalls(endpoint, 2, BOUND_MS)],
  ["through a client", (endpoint) => sdkCalls(engineClient(endpoint, { maxAttempts: 2, requestHandler }))],
])(
  "ends a call %s when its time is up, and may have happened",
  async (_transport, callsTo) => {
    const calls = callsTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const store = dynamoStoreOn({ calls, tableName: "silent" });
    await expect(new Fixture(store).acquire(A)).rejects.toMatchObject({ name: "StoreUnavailable", definite: false });
  },
  5_000,
);
