/**
 * API Gateway on localhost: an HTTP server in front of the handler, with the gateway's routes, limits and answers, so that requests behave
 * as in a deployment. It adds nothing to the service's answers.
 */
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Invocation } from "../../lambda/function-url.js";
import { type Clock, systemClock } from "../../lib/core/time.js";
import { eventOf, functionUrlEventOf } from "./gateway-event.js";
import { matchOperators } from "../../lambda/operators.js";
import { matchRoute } from "../../lambda/match-route.js";
import { type LocalServerOptions, type Serve, createLocalServer, splitUrl } from "./local-server.js";
import { PortTaken, StartError } from "./start-error.js";

/** The handler to serve, its address, its names, and its clock. The caller of a handler that fails gets only "Internal Server Error". */
export interface GatewayOptions extends LocalServerOptions {
  readonly handler: (event: APIGatewayProxyEventV2, invocation?: Invocation) => Promise<APIGatewayProxyStructuredResultV2>;
  /** The alias whose function URL this is instead of an API. @default none: an API */
  readonly alias?: string | undefined;
  /** The port; 0 chooses a free one. */
  readonly port: number;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** The clock for `timeEpoch` and the integration's timeout. @default the machine's clocks */
  readonly clock?: Clock;
}

/** Takes a request that is no part of the API and returns true; false for any other. */
export type Page = (request: IncomingMessage, response: ServerResponse) => boolean;

/** A running gateway. */
export interface Gateway {
  readonly url: string;
  readonly port: number;
  /** Offers each request to `page` first. */
  mount(page: Page): void;
  /** Stops accepting requests, answers those in progress within a grace period, then ends. */
  close(): Promise<void>;
}

/** API Gateway's body limit, in bytes. The service's own limit is far below. */
const MAX_BODY_BYTES = 10 * 1024 * 1024;
/** API Gateway's integration timeout, in ms. */
const INTEGRATION_TIMEOUT_MS = 30_000;
/** The grace period for requests in progress, in ms. */
const CLOSE_GRACE_MS = 5_000;

/** Starts the gateway. @throws PortTaken, or StartError if the port is not allowed */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { port, host = "127.0.0.1", clock = systemClock, allowedHosts = [], onError } = options;
  let page: Page = () => false;
  const serve: Serve = async (request, response) => {
    if (!page(request, response)) writeResult(response, await answer(request, options));
  };
  const server = createLocalServer(serve, { allowedHosts: [host, ...allowedHosts], onError });
  server.on("request", (_request, response) => {
    response.on("finish", () => !server.listening && server.closeIdleConnections());
  });
  await listen(server, port, host);
  const actual = (server.address() as AddressInfo).port;
  return {
    url: `http://${host}:${actual}`,
    port: actual,
    mount: (mounted) => void (page = mounted),
    async close() {
      const closed = once(server, "close");
      server.close();
      const grace = clock.inBackground(CLOSE_GRACE_MS, () => server.closeAllConnections());
      await closed;
      grace.cancel();
    },
  };
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") throw new PortTaken(`Port ${port} is in use: set PORT to another, or PORT=0 for any free one`);
    if (code === "EACCES") throw new StartError(`Port ${port} is not allowed here: set PORT to one above 1023`);
    throw new StartError(`Can't listen on ${host}:${port}: ${message}`, { cause: error });
  }
}

async function answer(
  request: IncomingMessage,
  { handler, alias, clock = systemClock }: GatewayOptions,
): Promise<APIGatewayProxyStructuredResultV2> {
  const timeEpoch = clock.wallMs();
  const body = await readBody(request);
  if (!body) return gatewayAnswer(413, "Request Entity Too Large");
  if (alias !== undefined) return byFunctionUrl(handler, alias, functionUrlEventOf(request, body, timeEpoch));
  const { encodedPath } = splitUrl(request);
  const route = matchOperators(encodedPath) ?? matchRoute(request.method ?? "", encodedPath);
  if (!route) return gatewayAnswer(400, "Bad Request");
  const event = eventOf(request, body, route, timeEpoch);
  const result = await withTimeout(handler(event), clock);
  if (!result) return gatewayAnswer(503, "Service Unavailable");
  return { ...result, headers: { ...result.headers, "apigw-requestid": event.requestContext.requestId } };
}

/** Invokes the function as the URL of its alias does. Lambda has no timeout but the function's own. */
async function byFunctionUrl(
  handler: GatewayOptions["handler"],
  alias: string,
  event: APIGatewayProxyEventV2,
): Promise<APIGatewayProxyStructuredResultV2> {
  const result = await handler(event, { invokedFunctionArn: `arn:aws:lambda:us-east-1:000000000000:function:local:${alias}` });
  return { ...result, headers: { ...result.headers, "x-amzn-requestid": event.requestContext.requestId } };
}

/** Returns the body; undefined if it is too large. The excess is read and discarded, so that the answer arrives. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    else chunks.length = 0;
  }
  return bytes > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks);
}

async function withTimeout<T>(answer: Promise<T>, clock: Clock): Promise<T | undefined> {
  let cancel = (): void => undefined;
  const timeout = new Promise<undefined>((resolve) => {
    const timer = clock.inBackground(INTEGRATION_TIMEOUT_MS, () => resolve(undefined));
    cancel = () => timer.cancel();
  });
  try {
    return await Promise.race([answer, timeout]);
  } finally {
    cancel();
  }
}

function writeResult(response: ServerResponse, result: APIGatewayProxyStructuredResultV2): void {
  const body = Buffer.from(result.body ?? "", result.isBase64Encoded === true ? "base64" : "utf8");
  response.statusCode = result.statusCode ?? 200;
  for (const [name, value] of Object.entries(result.headers ?? {})) response.setHeader(name, String(value));
  if (result.cookies) response.setHeader("set-cookie", result.cookies);
  if (body.length > 0 && !response.hasHeader("content-type")) response.setHeader("content-type", "text/plain; charset=utf-8");
  response.end(body);
}

/** Returns an answer that API Gateway gives itself, before or instead of the function. */
function gatewayAnswer(statusCode: number, message: string): APIGatewayProxyStructuredResultV2 {
  return { statusCode, headers: { "content-type": "application/json" }, body: JSON.stringify({ message }) };
}
