/**
 * Loads the AWS SDK. There is no import statement of it: in a bundle with the SDK outside, esbuild would put that at the bundle's start. The
 * functions have lambda/sdk.ts in place of this file.
 */
import { isWithoutCredentials } from "./found-credentials.js";
import { type Sdk, sdkOf } from "./sdk-access.js";

/** Loads it. @throws Error `SdkNotFoundError` with the `reason` why it is needed, if one of its packages is not there */
export async function loadSdk(reason: string): Promise<Sdk> {
  try {
    // Bundlers do without a package that is not there only if its import stands in a `try`.
    const [client, documents] = await Promise.all([import("@aws-sdk/client-dynamodb"), import("@aws-sdk/lib-dynamodb")]);
    return sdkOf(client, documents);
  } catch (cause) {
    if (isWithoutCredentials(cause)) throw cause; // It reads the environment as it is loaded, which Deno may not permit.
    const packages = "@aws-sdk/client-dynamodb @aws-sdk/lib-dynamodb";
    const message = `the AWS SDK could not be loaded, and is needed because ${reason}: npm install ${packages}`;
    throw Object.assign(new Error(message, { cause }), { name: "SdkNotFoundError" });
  }
}
