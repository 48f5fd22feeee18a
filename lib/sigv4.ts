/**
 * `holdfast/sigv4`: signs requests for an HTTP API or a function URL with IAM, or for a service of AWS. A function has its credentials in the
 * environment. Elsewhere the AWS SDK's chain of providers finds them, which is loaded with the first request.
 */
import { environment, fromEnvironment } from "./client/wire/environment.js";
import { LockError } from "./client/wire/errors.js";
import type { Sign } from "./client/wire/http-options.js";
import { systemClock } from "./core/time.js";
import { Finder, isWithoutCredentials, READS_FILES } from "./store/dynamo/found-credentials.js";
import { signedHeaders } from "./store/dynamo/signature.js";

/** AWS credentials, as returned by every credential provider of the AWS SDK. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** The API's region and the caller's credentials. */
export interface SigV4Options {
  /** @default the region in the host name of an API or a function URL, else AWS_REGION or AWS_DEFAULT_REGION */
  readonly region?: string | undefined;
  /** The service's name in the signature. @default `lambda` for the host name of a function URL, else `execute-api` */
  readonly service?: string | undefined;
  /**
   * The credentials of one caller, whatever the call chain: heartbeats of several leases share a request. A function is called for each request.
   * @default those of the environment; without any, the AWS SDK's chain: profile, container, instance; found anew when they expire, or are
   * refused
   */
  readonly credentials?: (Credentials | (() => Promise<Credentials>)) | undefined;
}

const EXECUTE_API_HOST = /\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/;
/** The words of a refusal that calls a signature too old, or too new. */
const SIGNED_AT_ANOTHER_TIME = /signature (?:expired|not yet current)|RequestTimeTooSkewed/i;
/** The host of a function URL, in any domain: emulators have their own. */
const FUNCTION_URL_HOST = /^[a-z0-9]+\.lambda-url\.([a-z]+(?:-[a-z]+)+-\d+)\./;

/**
 * Returns a signer for `createLockClient({ sign: sigv4() })`. It signs each attempt separately, so an attempt sent after the process was
 * frozen doesn't carry an old signature. If a signature is refused as too old or too new, the next ones have the time of that answer; if a request
 * is refused otherwise, the credentials are found anew.
 * @throws LockError `not-configured` at the first request if no region or no credentials can be found.
 */
export function sigv4({ region, service, credentials }: SigV4Options = {}): Sign {
  /** The offset of the signing clock from the machine's clock, in ms. */
  let offsetMs = 0;
  const chain = new Finder(providerChain, systemClock);
  const keysNow = async (): Promise<Credentials> => {
    if (typeof credentials === "object") return credentials;
    return fetched(credentials ?? (() => foundCredentials(chain)));
  };
  const sign: Sign = async (request) => {
    const url = new URL(request.url);
    const functionUrl = FUNCTION_URL_HOST.exec(url.hostname);
    const where =
      region ??
      (functionUrl ?? EXECUTE_API_HOST.exec(url.hostname))?.[1] ??
      fromEnvironment("AWS_REGION") ??
      fromEnvironment("AWS_DEFAULT_REGION");
    if (where === undefined) throw notConfigured("sigv4: no region; give one or set AWS_REGION");
    const keys = await keysNow();
    const scope = { region: where, service: service ?? (functionUrl ? "lambda" : "execute-api") };
    return signedHeaders({ ...request, url }, keys, scope, systemClock.wallMs() + offsetMs);
  };
  return Object.assign(sign, {
    oneCaller: true,
    async refused({ text, date, headers }: Refusal) {
      if (SIGNED_AT_ANOTHER_TIME.test(text)) {
        const dateMs = Date.parse(date ?? "");
        if (!Number.isNaN(dateMs)) offsetMs = dateMs - systemClock.wallMs();
        return true;
      }
      chain.refused();
      const keys = await keysNow().catch(() => undefined);
      return keys !== undefined && !isSignedBy(headers, keys);
    },
  });
}

type Refusal = Parameters<NonNullable<Sign["refused"]>>[0];

function isSignedBy(headers: Refusal["headers"], { accessKeyId, sessionToken }: Credentials): boolean {
  return headers["authorization"]?.includes(`Credential=${accessKeyId}/`) === true && headers["x-amz-security-token"] === sessionToken;
}

type Provider = () => Promise<Credentials>;

/** Returns the environment's credentials; those of the AWS SDK's chain if it has none, or names a profile, which comes first. */
async function foundCredentials(chain: Finder<Promise<Provider>>): Promise<Credentials> {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: token } = environment();
  if (!accessKeyId || !secretAccessKey || environment()["AWS_PROFILE"]) return (await chain.current)();
  return { accessKeyId, secretAccessKey, ...(token && { sessionToken: token }) };
}

async function providerChain(): Promise<Provider> {
  const name = "@aws-sdk/credential-provider-node";
  try {
    // Bundlers do without a package that is not there only if its import stands in a `try`.
    const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
    return defaultProvider(READS_FILES);
  } catch (cause) {
    if (isWithoutCredentials(cause)) throw cause; // It reads the environment as it is loaded, which Deno may not permit.
    throw notConfigured(`sigv4: the environment has no credentials, and ${name} could not be loaded: npm install ${name}`, cause);
  }
}

async function fetched(credentials: Provider): Promise<Credentials> {
  try {
    return await credentials();
  } catch (error) {
    throw isWithoutCredentials(error) ? notConfigured(error.message, error) : error;
  }
}

function notConfigured(message: string, cause?: unknown): LockError {
  return new LockError(message, { code: "not-configured", definite: true, retry: "never", cause });
}
