import { createLockClient } from "holdfast";
import { sigv4 } from "holdfast/sigv4";

const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" };
const fetch = async (_url, { headers }) => {
  console.log(new Headers(headers).get("authorization"));
  return new Response(null, { status: 204, headers: { "lease-state": "released" } });
};
const locks = createLockClient({ url: "https://api.example", sign: sigv4({ region: "eu-west-1", credentials }), fetch });
await locks.inspect("key").catch(() => undefined);
