/**
 * Loads the AWS SDK. There is no import statement of it: in a bundle with the SDK outside, esbuild would put that at the bundle's start. The
 * functions have lambda/sdk.ts in place of this file.
 */
import { type Sdk, sdkOf } from "./sdk-access.js";

/** @throws Error if one of the SDK's packages is not there */
export async function loadSdk(): Promise<Sdk> {
  const [client, documents] = await Promise.all([import("@aws-sdk/client-dynamodb"), import("@aws-sdk/lib-dynamodb")]);
  return sdkOf(client, documents);
}
