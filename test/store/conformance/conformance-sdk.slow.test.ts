/** The store through the AWS SDK's client, as it is where a user gives one: the whole suite once more. */
import { systemClock } from "../../../lib/core/time.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import { freshTable, throughSdk } from "../../support/engine.js";
import { lockStoreConformance } from "./conformance.js";
import { POLICY } from "../fixture.js";

lockStoreConformance("dynamo-store, through the AWS SDK", async () => {
  const { calls, tableName } = throughSdk(await freshTable());
  return createDynamoStore({ calls, tableName, policy: POLICY, clock: systemClock, random: () => 0.5 });
});
