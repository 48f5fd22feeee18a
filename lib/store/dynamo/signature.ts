/**
 * Signature Version 4 of a request to DynamoDB, or to another service of AWS. The day's key is derived once for each pair of credentials, so a
 * request costs two hashes and one HMAC. A property test compares it with `@smithy/signature-v4`.
 */
import * as crypto from "node:crypto";

/** AWS credentials. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/** The parts of a request's destination that its signature covers. */
export interface Scope {
  /** The `Host` header. */
  readonly host: string;
  /** The path, as sent. */
  readonly path: string;
  readonly region: string;
  /** The name of the service in the signature. */
  readonly service: string;
  /** @default "POST" */
  readonly method?: "GET" | undefined;
  /** The query, as sent: sorted and encoded. @default none */
  readonly query?: string | undefined;
}

/** The headers of a signed request: names and values alternate. */
export type RawHeaders = readonly string[];

/** Signs a request at the epoch time `atMs`. Without a `target`, which a service with a path for each operation doesn't have, it is empty. */
export type Sign = (target: string, body: string, atMs: number) => RawHeaders;

const CONTENT_TYPE = "application/x-amz-json-1.0";
const PLAIN_TYPE = "application/json";
const ALGORITHM = "AWS4-HMAC-SHA256";

/** Returns a signer of requests to one endpoint with one pair of credentials. */
export function signer(
  { accessKeyId, secretAccessKey, sessionToken }: Credentials,
  { host, path, region, service, method, query = "" }: Scope,
): Sign {
  const scopeOf = (day: string): string => `${day}/${region}/${service}/aws4_request`;
  const canonicalPath = path === "/" ? path : canonical(path);
  const tokenLine = sessionToken === undefined ? "" : `x-amz-security-token:${sessionToken}\n`;
  const common = `content-type;host;x-amz-date${sessionToken === undefined ? "" : ";x-amz-security-token"}`;
  const tokenHeader = sessionToken === undefined ? [] : ["x-amz-security-token", sessionToken];
  let day = "";
  let key: Buffer = Buffer.alloc(0);
  let second = Number.NaN;
  let time = "";

  return (target, body, atMs) => {
    const atSec = Math.floor(atMs / 1000);
    if (atSec !== second) {
      second = atSec;
      time = timeText(atSec * 1000);
      if (day !== time.slice(0, 8)) {
        day = time.slice(0, 8);
        key = [region, service, "aws4_request"].reduce<Buffer>(hmac, hmac(`AWS4${secretAccessKey}`, day));
      }
    }
    const names = target === "" ? common : `${common};x-amz-target`;
    const targetLine = target === "" ? "" : `x-amz-target:${target}\n`;
    const type = target === "" ? PLAIN_TYPE : CONTENT_TYPE;
    const headers = `content-type:${type}\nhost:${host}\nx-amz-date:${time}\n${tokenLine}${targetLine}`;
    const request = `${method ?? "POST"}\n${canonicalPath}\n${query}\n${headers}\n${names}\n${sha256(body)}`;
    const toSign = `${ALGORITHM}\n${time}\n${scopeOf(day)}\n${sha256(request)}`;
    const signature = crypto.createHmac("sha256", key).update(toSign).digest("hex");
    const authorization = `${ALGORITHM} Credential=${accessKeyId}/${scopeOf(day)}, SignedHeaders=${names}, Signature=${signature}`;
    return [
      ...["host", host, "content-type", type, ...(target === "" ? [] : ["x-amz-target", target]), "x-amz-date", time],
      ...tokenHeader,
      ...["authorization", authorization],
    ];
  };
}

/** Formats a time like `20270101T000000Z`. */
function timeText(atMs: number): string {
  return new Date(atMs).toISOString().replace(/[-:]|\.\d{3}/g, "");
}

/** Returns the path without empty and dot segments, and with each other segment encoded once more. */
function canonical(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  const normal = `/${segments.join("/")}${segments.length > 0 && path.endsWith("/") ? "/" : ""}`;
  const encoded = encodeURIComponent(normal).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  return encoded.replaceAll("%2F", "/");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return crypto.createHmac("sha256", key).update(text).digest();
}

/** Node 20.12 and later hash in one call, for half the cost. */
const { hash: hashAtOnce } = crypto as { readonly hash?: typeof crypto.hash };

const sha256: (text: string) => string = hashAtOnce
  ? (text) => hashAtOnce("sha256", text, "hex")
  : (text) => crypto.createHash("sha256").update(text).digest("hex");
