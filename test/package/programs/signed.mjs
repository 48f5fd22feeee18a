// Signs with the credentials of a profile, which the chain of providers reads.
import { writeFileSync } from "node:fs";
import { createLockClient } from "holdfast";
import { sigv4 } from "holdfast/sigv4";

writeFileSync("credentials", "[shop]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\n");
Object.assign(process.env, { AWS_PROFILE: "shop", AWS_SHARED_CREDENTIALS_FILE: "credentials", AWS_CONFIG_FILE: "none" });
const fetch = async (_url, { headers }) => {
  console.log(new Headers(headers).get("authorization"));
  return new Response(null, { status: 204, headers: { "lease-state": "released" } });
};
const locks = createLockClient({ url: "https://api.example", sign: sigv4({ region: "eu-west-1" }), fetch });
await locks.inspect("key").catch(() => undefined);
