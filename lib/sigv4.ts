/**
 * `holdfast/sigv4`: signs requests for an HTTP API or a function URL with IAM, or for a service of AWS, with credentials from the AWS SDK's
 * providers.
 */
import { createHash, createHmac } from "node:crypto";
import { defaultProvider } from "@aws-sdk/credential-provider-node";
import { SignatureV4 } from "@smithy/signature-v4";
import { fromEnvironment } from "./client/wire/environment.js";
import { LockError } from "./client/wire/errors.js";
import type { Sign } from "./client/wire/http-options.js";

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
   * The credentials of one caller, whatever the call chain: heartbeats of several leases share a request.
   * @default the AWS SDK's chain: environment, profile, container, instance; refreshed when they expire
   */
  readonly credentials?: (Credentials | (() => Promise<Credentials>)) | undefined;
}

const EXECUTE_API_HOST = /\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/;
/** The host of a function URL, in any domain: emulators have their own. */
const FUNCTION_URL_HOST = /^[a-z0-9]+\.lambda-url\.([a-z]+(?:-[a-z]+)+-\d+)\./;

/**
 * Returns a signer for `createLockClient({ sign: sigv4() })`. It signs each attempt separately, so an attempt sent after the process was
 * frozen doesn't carry an old signature.
 * @throws LockError `not-configured` at the first request if no region or no credentials can be found.
 */
export function sigv4({ region, service, credentials = defaultProvider() }: SigV4Options = {}): Sign {
  const sign: Sign = async ({ method, url, headers, body }) => {
    const { hostname, host, pathname, searchParams, protocol, port } = new URL(url);
    const functionUrl = FUNCTION_URL_HOST.exec(hostname);
    const where =
      region ??
      (functionUrl ?? EXECUTE_API_HOST.exec(hostname))?.[1] ??
      fromEnvironment("AWS_REGION") ??
      fromEnvironment("AWS_DEFAULT_REGION");
    if (where === undefined) throw notConfigured("sigv4: no region; give one or set AWS_REGION");
    const signer = new SignatureV4({
      service: service ?? (functionUrl ? "lambda" : "execute-api"),
      region: where,
      credentials,
      sha256: Sha256,
    });
    const signed = await signer
      .sign({
        method,
        protocol,
        hostname,
        ...(port !== "" && { port: Number(port) }),
        path: pathname,
        query: Object.fromEntries(searchParams),
        headers: { ...headers, host },
        ...(body !== undefined && { body }),
      })
      .catch((error: unknown) => {
        throw error instanceof Error && NO_CREDENTIALS.includes(error.name) ? notConfigured(error.message, error) : error;
      });
    const { host: _host, ...toSend } = signed.headers;
    return toSend;
  };
  return Object.assign(sign, { oneCaller: true });
}

/** The names of the AWS SDK's errors when no provider has credentials. */
const NO_CREDENTIALS = ["CredentialsProviderError", "TokenProviderError"];

function notConfigured(message: string, cause?: Error): LockError {
  return new LockError(message, { code: "not-configured", definite: true, retry: "never", cause });
}

type Bytes = string | ArrayBuffer | ArrayBufferView;

/** SHA-256 and HMAC-SHA-256 with the interface that the signer expects. */
class Sha256 {
  readonly #hash: ReturnType<typeof createHash> | ReturnType<typeof createHmac>;
  constructor(secret?: Bytes) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", toBuffer(secret));
  }
  update(data: Bytes): void {
    this.#hash.update(toBuffer(data));
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {
    throw new Error("a digest is taken once");
  }
}

function toBuffer(data: Bytes): Buffer {
  if (typeof data === "string") return Buffer.from(data, "utf8");
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}
