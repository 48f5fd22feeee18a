/** The store through the AWS SDK's client, as it goes where the client carries what the built-in transport can't: the whole suite once more. */
import { systemClock } from "../../../lib/core/time.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import { freshTable } from "../../support/engine.js";
import { lockStoreConformance } from "./conformance.js";
import { POLICY } from "../fixture.js";

lockStoreConformance("dynamo-store, through the AWS SDK", async () => {
  const { client, tableName } = await freshTable();
  return createDynamoStore({ client, transport: "sdk", tableName, policy: POLICY, clock: systemClock, random: () => 0.5 });
});
