/**
 * Signature Version 4 of a request to DynamoDB, to another service of AWS, or to an API. The day's key is derived once for each signer, so a
 * request to DynamoDB costs two hashes and one HMAC. Property tests compare the signatures with those of `@smithy/signature-v4`.
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
  readonly method?: "GET" | "POST" | undefined;
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
export function signer(credentials: Credentials, { host, path, region, service, method = "POST", query = "" }: Scope): Sign {
  const { timeAt, authorization } = authority(credentials, region, service);
  const { sessionToken } = credentials;
  const line = `${method}\n${canonical(path)}\n${query}\n`;
  const tokenLine = sessionToken === undefined ? "" : `x-amz-security-token:${sessionToken}\n`;
  const common = `content-type;host;x-amz-date${sessionToken === undefined ? "" : ";x-amz-security-token"}`;
  const tokenHeader = sessionToken === undefined ? [] : ["x-amz-security-token", sessionToken];
  return (target, body, atMs) => {
    const time = timeAt(atMs);
    const names = target === "" ? common : `${common};x-amz-target`;
    const targetLine = target === "" ? "" : `x-amz-target:${target}\n`;
    const type = target === "" ? PLAIN_TYPE : CONTENT_TYPE;
    const headers = `content-type:${type}\nhost:${host}\nx-amz-date:${time}\n${tokenLine}${targetLine}`;
    return [
      ...["host", host, "content-type", type, ...(target === "" ? [] : ["x-amz-target", target]), "x-amz-date", time],
      ...tokenHeader,
      ...["authorization", authorization(`${line}${headers}\n${names}\n${sha256(body)}`, names)],
    ];
  };
}

/** A request to any service, before it is signed. */
export interface Unsigned {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/** Proxies change these headers on the way, so they are not signed. */
const UNSIGNED = new RegExp(
  "^(?:authorization|cache-control|connection|expect|from|keep-alive|max-forwards|pragma|referer|te|trailer|transfer-encoding|upgrade" +
    "|user-agent|x-amzn-trace-id|proxy-.*|sec-.*)$",
  "i",
);

/** Signs a whole request, with all its headers, at the epoch time `atMs`. Returns the headers to be added to it. */
export function signedHeaders(
  { method, url, headers, body = "" }: Unsigned,
  { sessionToken, ...keys }: Credentials,
  { region, service }: Pick<Scope, "region" | "service">,
  atMs: number,
): Readonly<Record<string, string>> {
  const { timeAt, authorization } = authority(keys, region, service);
  const bodyHash = sha256(body);
  const added = {
    "x-amz-date": timeAt(atMs),
    "x-amz-content-sha256": bodyHash,
    ...(sessionToken !== undefined && { "x-amz-security-token": sessionToken }),
  };
  const signed = Object.entries({ ...headers, ...added, host: url.host })
    .filter(([name]) => !UNSIGNED.test(name))
    .map(([name, value]) => [name.toLowerCase(), value.replace(/[ \t\r\n]+/g, " ").replace(/^ | $/g, "")] as const)
    .sort(byName);
  const names = signed.map(([name]) => name).join(";");
  const query = Array.from(url.searchParams, ([name, value]) => [escaped(name), escaped(value)] as const).sort(byName);
  const request = [
    ...[method, canonical(url.pathname), query.map((pair) => pair.join("=")).join("&")],
    ...[...signed.map((pair) => pair.join(":")), "", names, bodyHash],
  ].join("\n");
  return { ...added, authorization: authorization(request, names) };
}

type Pair = readonly [name: string, value: string];

function byName([name, value]: Pair, [otherName, otherValue]: Pair): number {
  if (name !== otherName) return name < otherName ? -1 : 1;
  return value < otherValue ? -1 : 1;
}

/** The part that all signatures have in common: the time, and the `authorization` of a canonical request at the last time. */
function authority({ accessKeyId, secretAccessKey }: Credentials, region: string, service: string) {
  let day = "";
  let scope = "";
  let key: Buffer = Buffer.alloc(0);
  let second = Number.NaN;
  let time = "";
  return {
    timeAt: (atMs: number): string => {
      const atSec = Math.floor(atMs / 1000);
      if (atSec === second) return time;
      second = atSec;
      time = timeText(atSec * 1000);
      if (day === time.slice(0, 8)) return time;
      day = time.slice(0, 8);
      scope = `${day}/${region}/${service}/aws4_request`;
      key = [region, service, "aws4_request"].reduce<Buffer>(hmac, hmac(`AWS4${secretAccessKey}`, day));
      return time;
    },
    authorization: (request: string, names: string): string => {
      const signature = crypto
        .createHmac("sha256", key)
        .update(`${ALGORITHM}\n${time}\n${scope}\n${sha256(request)}`)
        .digest("hex");
      return `${ALGORITHM} Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
    },
  };
}

/** Formats a time like `20270101T000000Z`. */
function timeText(atMs: number): string {
  return new Date(atMs).toISOString().replace(/[-:]|\.\d{3}/g, "");
}

/** Returns the path without empty and dot segments, and with each other segment encoded once more. */
function canonical(path: string): string {
  if (path === "/") return path;
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  const normal = `/${segments.join("/")}${segments.length > 0 && path.endsWith("/") ? "/" : ""}`;
  return escaped(normal).replaceAll("%2F", "/");
}

/** Encodes all but letters, digits and `-_.~`. */
function escaped(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}

function hmac(key: string | Buffer, text: string): Buffer {
  return crypto.createHmac("sha256", key).update(text).digest();
}

/** Node 20.12 and later hash in one call, for half the cost. */
const { hash: hashAtOnce } = crypto as { readonly hash?: typeof crypto.hash };

const sha256: (text: string) => string = hashAtOnce
  ? (text) => hashAtOnce("sha256", text, "hex")
  : (text) => crypto.createHash("sha256").update(text).digest("hex");
