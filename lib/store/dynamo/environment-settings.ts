/**
 * The built-in transport's settings, from the environment and what the caller gives. Reading them loads no part of the AWS SDK. If the SDK
 * would look elsewhere (profiles, containers, other partitions), it is loaded (table-access.ts).
 */
import type { Clock } from "../../core/time.js";
import { VERSION } from "../../core/version.js";
import type { Destination, TransportSettings } from "./built-in-calls.js";
import { TABLE_CALLS, connections, endpointAt } from "./http-sender.js";
import { standardRetries } from "./retries.js";
import { signer } from "./signature.js";

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

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

/** Fixed credentials. */
interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}
const KEYS: ReadonlySet<string> = new Set<keyof Keys>(["accessKeyId", "secretAccessKey", "sessionToken"]);

/** The part of the place that a caller gives. The environment says the rest. */
interface Given {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly credentials?: object | undefined;
}

/** Reads the settings from `env`, with what is given in its place. A returned string gives the reason why the AWS SDK is needed. */
export function environmentSettings(
  env: Environment,
  deps: { readonly clock: Clock; readonly random: () => number },
  { region = env["AWS_REGION"] ?? "", endpoint, credentials }: Given = {},
): TransportSettings | string {
  const elsewhere = ELSEWHERE.find((name) => isSet(env, name));
  if (elsewhere !== undefined) return `${elsewhere} is set`;
  if (credentials && !isFixed(credentials)) return "credentials are given that change";
  const missing = credentials ? undefined : ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].find((name) => !isSet(env, name));
  if (missing !== undefined) return `${missing} is not set`;
  if (region === "") return "AWS_REGION is not set";
  const domain = domainOf(region);
  const named = [endpoint, env["AWS_ENDPOINT_URL_DYNAMODB"], env["AWS_ENDPOINT_URL"]].find(Boolean);
  // A function has no profile. Elsewhere the default one may name another endpoint.
  if (named === undefined && !isSet(env, "AWS_LAMBDA_FUNCTION_NAME")) return "a profile may name the endpoint";
  if (named === undefined && domain === undefined) return `the endpoint of ${region} is not known`;
  const url = new URL(named ?? `https://dynamodb.${region}.${domain ?? ""}`);
  if (url.protocol !== "http:" && url.protocol !== "https:") return `the endpoint ${url.protocol} is neither http: nor https:`;
  const retries = standardRetries(TABLE_CALLS.maxAttempts, deps);
  return {
    destination: destinations(() => credentials ?? keysIn(env), url, region),
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

/** True if these credentials are three texts at most: no function, and nothing that expires or chooses an account's endpoint. */
function isFixed(credentials: object): credentials is Keys {
  return typeof credentials === "object" && Object.keys(credentials).every((name) => KEYS.has(name));
}

/** Returns the credentials that the environment has now. */
function keysIn(env: Environment): Keys {
  const { AWS_ACCESS_KEY_ID: accessKeyId = "", AWS_SECRET_ACCESS_KEY: secretAccessKey = "", AWS_SESSION_TOKEN: token } = env;
  return { accessKeyId, secretAccessKey, sessionToken: token === "" ? undefined : token };
}

/** Returns a fixed endpoint, with the credentials of the time. */
function destinations(keys: () => Keys, url: URL, region: string): TransportSettings["destination"] {
  const endpoint = endpointAt(url, connections());
  const scope = { host: url.host, path: endpoint.path, region, service: "dynamodb" };
  let last: { readonly of: string; readonly found: Destination } | undefined;
  return async () => {
    const now = keys();
    const of = `${now.accessKeyId} ${now.secretAccessKey} ${now.sessionToken ?? ""}`;
    if (last?.of !== of) last = { of, found: { endpoint, sign: signer({ ...now, sessionToken: now.sessionToken }, scope) } };
    return last.found;
  };
}
