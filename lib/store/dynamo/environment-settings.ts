/**
 * The built-in transport's settings in a function, from its environment. Reading them loads no part of the AWS SDK. If the SDK would look
 * elsewhere (profiles, containers, other partitions), it is loaded (table-access.ts).
 */
import type { Clock } from "../../core/time.js";
import { VERSION } from "../../core/version.js";
import { TABLE_CALLS } from "./table.js";
import type { Destination, TransportSettings } from "./built-in-calls.js";
import { connections, endpointAt } from "./http-sender.js";
import { standardRetries } from "./retries.js";
import { signer } from "./signature.js";

/** The variables of a process. */
type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that make the AWS SDK use other credentials or another endpoint. */
const ELSEWHERE = [
  ...["AWS_PROFILE", "AWS_CREDENTIAL_EXPIRATION", "AWS_CREDENTIAL_SCOPE", "AWS_ACCOUNT_ID", "AWS_ACCOUNT_ID_ENDPOINT_MODE"],
  ...["AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_RETRY_MODE"],
];
/** The domains of known regions' endpoints. Each pattern is that of a partition. */
const DOMAINS: readonly (readonly [RegExp, string])[] = [
  [/^(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+$/, "amazonaws.com"],
  [/^us-gov-\w+-\d+$/, "amazonaws.com"],
  [/^cn-\w+-\d+$/, "amazonaws.com.cn"],
];

/** Reads the settings from `env`. A returned string gives the reason why the AWS SDK is needed. */
export function environmentSettings(
  env: Environment,
  deps: { readonly clock: Clock; readonly random: () => number },
): TransportSettings | string {
  const elsewhere = ELSEWHERE.find((name) => isSet(env, name));
  if (elsewhere !== undefined) return `${elsewhere} is set`;
  const missing = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"].find((name) => !isSet(env, name));
  if (missing !== undefined) return `${missing} is not set`;
  const region = env["AWS_REGION"] ?? "";
  const domain = domainOf(region);
  const named = [env["AWS_ENDPOINT_URL_DYNAMODB"], env["AWS_ENDPOINT_URL"]].find(Boolean);
  if (named === undefined && domain === undefined) return `the endpoint of ${region} is not known`;
  const url = new URL(named ?? `https://dynamodb.${region}.${domain ?? ""}`);
  if (url.protocol !== "http:" && url.protocol !== "https:") return `the endpoint ${url.protocol} is neither http: nor https:`;
  const retries = standardRetries(TABLE_CALLS.maxAttempts, deps);
  return {
    destination: destinations(env, url, region),
    retries: () => Promise.resolve(retries),
    userAgent: `holdfast/${VERSION} lang/js md/nodejs#${process.versions.node} exec-env/${env["AWS_EXECUTION_ENV"] ?? "none"}`,
  };
}

/** Returns the domain of the endpoints in a Region; undefined if it is not known. */
export function domainOf(region: string): string | undefined {
  return DOMAINS.find(([regions]) => regions.test(region))?.[1];
}

function isSet(env: Environment, name: string): boolean {
  return env[name] !== undefined && env[name] !== "";
}

/** Returns a fixed endpoint, with the credentials that the environment has at the time. */
function destinations(env: Environment, url: URL, region: string): TransportSettings["destination"] {
  const endpoint = endpointAt(url, connections());
  const scope = { host: url.host, path: endpoint.path, region, service: "dynamodb" };
  let last: { readonly of: string; readonly found: Destination } | undefined;
  return async () => {
    const { AWS_ACCESS_KEY_ID: accessKeyId = "", AWS_SECRET_ACCESS_KEY: secretAccessKey = "", AWS_SESSION_TOKEN: token } = env;
    const of = `${accessKeyId} ${secretAccessKey} ${token ?? ""}`;
    if (last?.of !== of) {
      const credentials = { accessKeyId, secretAccessKey, sessionToken: token === "" ? undefined : token };
      last = { of, found: { endpoint, sign: signer(credentials, scope) } };
    }
    return last.found;
  };
}
