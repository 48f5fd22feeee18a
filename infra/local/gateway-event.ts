/**
 * Builds the event that API Gateway's HTTP API passes to a function: payload format 2.0 with its peculiarities. The caller comes from a
 * header that exists only here and is not passed to the function.
 */
import type { APIGatewayProxyEventV2WithIAMAuthorizer } from "aws-lambda";
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { RouteMatch } from "../../lambda/match-route.js";
import { splitUrl } from "./local-server.js";

/** The header that names the caller, on localhost only. */
export const PRINCIPAL_HEADER = "x-holdfast-principal";

const DEFAULT_PRINCIPAL = "local";
/** The account of all local callers. */
const ACCOUNT = "local";
const STAGE = "$default";

/** The content types of text bodies. A body of another type, or without a type, reaches the function in base64. */
const TEXT_BODY = /^(?:text\/.*|application\/(?:json|javascript|xml))$/;

/** Returns the event of `request`, which arrived at `timeEpoch` and matched `route`. */
export function eventOf(
  request: IncomingMessage,
  body: Buffer,
  route: RouteMatch,
  timeEpoch: number,
): APIGatewayProxyEventV2WithIAMAuthorizer {
  const { encodedPath, rawQueryString } = splitUrl(request);
  const rawPath = decoded(encodedPath);
  const { cookie, [PRINCIPAL_HEADER]: principal, ...headers } = headersOf(request);
  const method = request.method ?? "";
  const query = queryOf(rawQueryString);
  const domainName = headers["host"] ?? "";
  return {
    version: "2.0",
    routeKey: route.routeKey,
    rawPath,
    rawQueryString,
    ...(cookie !== undefined && { cookies: cookie.split(/;\s*/) }),
    headers,
    ...(query && { queryStringParameters: query }),
    requestContext: {
      accountId: ACCOUNT,
      apiId: "local",
      authorizer: { iam: identityOf(principal) },
      domainName,
      domainPrefix: domainName.split(".", 1)[0] ?? "",
      http: {
        method,
        path: rawPath,
        protocol: `HTTP/${request.httpVersion}`,
        sourceIp: request.socket.remoteAddress ?? "",
        userAgent: headers["user-agent"] ?? "",
      },
      requestId: randomUUID(),
      routeKey: route.routeKey,
      stage: STAGE,
      time: logTime(timeEpoch),
      timeEpoch,
    },
    ...(route.pathParameters && { pathParameters: route.pathParameters }),
    ...bodyOf(body, headers["content-type"]),
  };
}

/**
 * Returns the event that a function URL passes to its function: no route, no path parameters, and the path as it was sent, still encoded.
 * https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
 */
export function functionUrlEventOf(request: IncomingMessage, body: Buffer, timeEpoch: number): APIGatewayProxyEventV2WithIAMAuthorizer {
  const { encodedPath } = splitUrl(request);
  const event = eventOf(request, body, { routeKey: STAGE }, timeEpoch);
  const { requestContext } = event;
  const http = { ...requestContext.http, path: encodedPath };
  return { ...event, rawPath: encodedPath, requestContext: { ...requestContext, http } };
}

/** A function URL takes a path that can't be decoded, and API Gateway doesn't come here with one. */
function decoded(encodedPath: string): string {
  try {
    return decodeURIComponent(encodedPath);
  } catch {
    return encodedPath;
  }
}

/** Returns the headers with lower-case names. Values of repeated headers are joined with commas in the order sent. */
function headersOf({ rawHeaders }: IncomingMessage): Record<string, string> {
  const headers = new Map<string, string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? "";
    const value = rawHeaders[at + 1] ?? "";
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}${name === "cookie" ? "; " : ","}${value}`);
  }
  return Object.fromEntries(headers);
}

/** Returns the decoded query parameters. Values of repeated parameters are joined with commas. */
function queryOf(rawQueryString: string): Record<string, string> | undefined {
  if (rawQueryString === "") return undefined;
  const query = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(rawQueryString)) {
    const before = query.get(name);
    query.set(name, before === undefined ? value : `${before},${value}`);
  }
  return Object.fromEntries(query);
}

/**
 * Returns the IAM identity of a caller. A colon would start a role's session, which is ignored, so it is encoded to keep the whole name.
 */
function identityOf(named: string | undefined) {
  const principal = named === undefined || named === "" ? DEFAULT_PRINCIPAL : named.replaceAll(/[%:]/g, encodeURIComponent);
  return {
    accessKey: "local",
    accountId: ACCOUNT,
    callerId: principal,
    cognitoIdentity: null,
    principalOrgId: "",
    userArn: `arn:aws:iam::${ACCOUNT}:user/${principal}`,
    userId: principal,
  };
}

function bodyOf(body: Buffer, contentType = ""): { body?: string; isBase64Encoded: boolean } {
  if (body.length === 0) return { isBase64Encoded: false };
  const isText = TEXT_BODY.test((contentType.split(";", 1)[0] ?? "").trim().toLowerCase());
  return { body: body.toString(isText ? "utf8" : "base64"), isBase64Encoded: !isText };
}

/** Formats a time as in web server logs: `20/Nov/2026:21:08:54 +0000`. */
function logTime(timeEpoch: number): string {
  const [, day, month, year, time] = new Date(timeEpoch).toUTCString().split(" ");
  return `${day}/${month}/${year}:${time} +0000`;
}
