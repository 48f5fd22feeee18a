/**
 * A stand-in for API Gateway's IAM authorizer on localhost, based on AWS's documentation: it checks signatures, looks
 * up a role's rights by the path as it was sent, and refuses too many concurrent requests. It shows that the tests of a
 * deployment run. It doesn't show how AWS behaves.
 */
import { createHash, createHmac } from "node:crypto";
import { matchRoute } from "../../lambda/match-route.js";
import { dutyOf } from "../../lambda/routes.js";
import type { Credentials } from "../../lib/sigv4.js";

/** A caller that the stand-in knows. */
export interface KnownCaller {
  readonly credentials: Credentials;
  /** The principal at the local gateway. Sessions of one role share it. */
  readonly principal: string;
  /** The prefix of its keys, for a client that may use no others. */
  readonly prefix?: string;
}

/** The stand-in and its callers. */
export interface StandIn {
  readonly region: string;
  readonly callers: readonly KnownCaller[];
  /** The number of concurrent requests above which it refuses more. */
  readonly atOnce: number;
  /** Sends the requests that pass. @default fetch */
  readonly behind?: typeof fetch;
}

/** The time for which a signature is valid. */
const SIGNATURE_MS = 5 * 60_000;
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/execute-api\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;

/** A `fetch` through the stand-in. */
export function standIn(options: StandIn): typeof fetch {
  const { callers, atOnce, behind = fetch } = options;
  let underWay = 0;
  return async (input, init = {}) => {
    const headers = Object.fromEntries(new Headers(init.headers));
    const body = typeof init.body === "string" ? init.body : "";
    const request = { method: init.method ?? "GET", url: new URL(input as string), headers, body };
    const [, accessKeyId] = AUTHORIZATION.exec(headers["authorization"] ?? "") ?? [];
    const caller = callers.find(({ credentials }) => credentials.accessKeyId === accessKeyId) ?? callers[0]!;
    const refused = CHECKS.find(([, passes]) => !passes(request, caller, options));
    if (refused) return says(403, `Forbidden: ${refused[0]}`);
    if (underWay >= atOnce) return says(429, "Too Many Requests");
    underWay++;
    try {
      return await behind(input, { ...init, headers: { ...headers, "x-holdfast-principal": caller.principal } });
    } finally {
      underWay--;
    }
  };
}

const CHECKS: readonly (readonly [check: string, passes: (request: Request, caller: KnownCaller, options: StandIn) => boolean])[] = [
  ["signature", isSigned],
  ["region", ({ headers }, _caller, { region }) => [undefined, region].includes(AUTHORIZATION.exec(headers["authorization"] ?? "")?.[3])],
  ["time", ({ headers }) => !(Math.abs(Date.now() - timeOf(headers["x-amz-date"])) > SIGNATURE_MS)],
  ["rights", isGranted],
];

interface Request {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function says(status: number, message: string): Response {
  return new Response(JSON.stringify({ message }), { status, headers: { "content-type": "application/json" } });
}

/** True if the stack grants the call to a client of a prefix: its path names such a key, as it is or encoded. */
function isGranted({ method, url: { pathname } }: Request, { prefix }: KnownCaller): boolean {
  if (prefix === undefined) return true;
  const duty = dutyOf(matchRoute(method, pathname)?.routeKey ?? "$default");
  const [, , kind = "", key = ""] = pathname.split("/");
  const isOwn = ["locks", "runs"].includes(kind) && [prefix, encodeURIComponent(prefix)].some((form) => key.startsWith(form));
  return duty !== "admin" && (isOwn || pathname === "/v1/health" || pathname === "/v1/openapi.json");
}

/** Parses `20261122T010203Z` to epoch ms; NaN without a date. */
function timeOf(amzDate = ""): number {
  return Date.parse(amzDate.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
const escaped = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

/** Checks Signature Version 4. It escapes the path's segments once more, even if they are escaped already. */
function isSigned({ method, url, headers, body }: Request, { credentials }: KnownCaller): boolean {
  const [, accessKeyId, date = "", region = "", names = "", signature] = AUTHORIZATION.exec(headers["authorization"] ?? "") ?? [];
  const query = [...url.searchParams].map(([name, value]) => `${escaped(name)}=${escaped(value)}`).sort();
  const canonical = [
    method,
    url.pathname.split("/").map(escaped).join("/"),
    query.join("&"),
    ...names.split(";").map((name) => `${name}:${(name === "host" ? url.host : (headers[name] ?? "")).trim()}`),
    "",
    names,
    sha256(body),
  ].join("\n");
  const scope = `${date}/${region}/execute-api/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, sha256(canonical)].join("\n");
  const key = [region, "execute-api", "aws4_request"].reduce<Buffer>(
    (derived, part) => hmac(derived, part),
    hmac(`AWS4${credentials.secretAccessKey}`, date),
  );
  return accessKeyId === credentials.accessKeyId && hmac(key, toSign).toString("hex") === signature;
}
