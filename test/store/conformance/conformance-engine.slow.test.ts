/** The whole suite on the engine, through each transport: the built-in one, and the AWS SDK's client, which a user may give. */
import { systemClock } from "../../../lib/core/time.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import { freshTable, throughSdk } from "../../support/engine.js";
import { lockStoreConformance } from "./conformance.js";
import { POLICY } from "../fixture.js";

lockStoreConformance("dynamo-store", async () => {
  const { calls, tableName } = await freshTable();
  return createDynamoStore({ calls, tableName, policy: POLICY, clock: systemClock, random: () => 0.5 });
});

lockStoreConformance("dynamo-store, through the AWS SDK", async () => {
  const { calls, tableName } = throughSdk(await freshTable());
  return createDynamoStore({ calls, tableName, policy: POLICY, clock: systemClock, random: () => 0.5 });
});
