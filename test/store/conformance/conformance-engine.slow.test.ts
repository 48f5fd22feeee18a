/** The whole suite on the engine, through each transport: the built-in one, and the AWS SDK's client, which a user may give. */
import { freshTable, throughSdk } from "../../support/engine.js";
import { lockStoreConformance } from "./conformance.js";
import { dynamoStoreOn } from "../fixture.js";

lockStoreConformance("dynamo-store", async () => dynamoStoreOn(await freshTable()));

lockStoreConformance("dynamo-store, through the AWS SDK", async () => dynamoStoreOn(throughSdk(await freshTable())));
