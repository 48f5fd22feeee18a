/**
 * Faults between a client and DynamoDB, on demand: an HTTP proxy in front of an engine, or of any other server. It loses
 * responses after the write, loses, delays or repeats requests, and answers instead of the engine. It also counts the
 * requests and capacity units that reach the engine.
 */
import { once } from "node:events";
import { Agent, createServer, request as httpRequest } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { inject } from "vitest";
import { type Ledger, createLedger, withCapacity } from "./ledger.js";

/**
 * A request to DynamoDB: its operation, such as `UpdateItem`, its headers, and its input on the wire. A request to another
 * server: its method, and its body.
 */
export interface DynamoRequest {
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  // The input depends on the operation.
  readonly body: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- a test reads what it sent
}

/** A fault: the fate of a request that isn't simply forwarded. */
export type Fault =
  /** The engine carries the request out, but the client's connection breaks before the response. */
  | { readonly kind: "lose-reply" }
  /** The engine never gets the request, and the client's connection breaks. */
  | { readonly kind: "lose-request" }
  /** The engine carries the request out twice, the second time after `againAfterMs`. The client gets the first response. */
  | { readonly kind: "duplicate"; readonly againAfterMs: number }
  /** The client gets this response. The engine gets the request only if `carriedOut` is true. @default InternalServerError, 500 */
  | {
      readonly kind: "answer";
      readonly status?: number;
      readonly errorName?: string;
      readonly headers?: Readonly<Record<string, string>>;
      /** The members of the body beside the error's name, or in their place. @default a message */
      readonly says?: (request: DynamoRequest) => object;
      readonly carriedOut?: boolean;
    }
  /** The request reaches the engine only when `until` settles: the late write. */
  | { readonly kind: "hold-request"; readonly until: Promise<unknown> }
  /** The engine carries the request out. The response reaches the client only when `until` settles. */
  | { readonly kind: "hold-reply"; readonly until: Promise<unknown> };

/** A transaction that is cancelled for these reasons, one for each item. */
export function cancelledFor(...CancellationReasons: readonly { readonly Code: string }[]): Fault {
  const codes = CancellationReasons.map(({ Code }) => Code).join(", ");
  const message = `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`;
  const says = () => ({ message, CancellationReasons });
  return { kind: "answer", status: 400, errorName: "TransactionCanceledException", says };
}

/** Selects the requests that a fault affects. */
export interface FaultRule {
  /** @default every request */
  readonly when?: (request: DynamoRequest) => boolean;
  /** The number of requests that the fault affects, starting with the next. @default 1 */
  readonly times?: number;
}

export interface PlannedFault {
  /** The number of requests affected so far. */
  readonly struck: number;
  /** Settles when the fault first affects a request. For faults of the response, that is once the engine has responded. */
  readonly first: Promise<void>;
}

/** A running proxy. */
export interface FaultProxy {
  readonly endpoint: string;
  /** The requests that reached the engine since the start, or since `ledger.clear()`. */
  readonly ledger: Ledger;
  /** Plans a fault. If several faults match a request, the first planned one affects it. */
  plan(fault: Fault, rule?: FaultRule): PlannedFault;
  close(): Promise<void>;
}

/** A request that is held on its way. */
interface Held {
  /** Resolves when the request is there. */
  readonly reached: Promise<void>;
  letGo(): void;
}

/** Holds the next of these requests until it is let go. */
export function holding(proxy: FaultProxy, when: NonNullable<FaultRule["when"]>): Held {
  let letGo = (): void => undefined;
  const until = new Promise<void>((resolve) => (letGo = resolve));
  return { reached: proxy.plan({ kind: "hold-request", until }, { when }).first, letGo };
}

interface Plan extends PlannedFault {
  readonly fault: Fault;
  readonly when: (request: DynamoRequest) => boolean;
  left: number;
  struck: number;
  readonly strike: () => void;
}

const FORWARD = { kind: "forward" } as const;
const REPLY_FAULTS: readonly string[] = ["lose-reply", "hold-reply"];

/** Decides the fate of a request for which no fault is planned. Undefined forwards it. */
export type Draw = (request: DynamoRequest) => Fault | undefined;

/**
 * Starts a proxy in front of `target`, by default the engine of this test run. A function names the target of each
 * request, for servers that move or share the load.
 */
// Over 60 lines: one model or one server, whose parts share its state.
export async function startFaultProxy(
  target: string | (() => string) = inject("engineEndpoint"),
  draw: Draw = () => undefined,
): Promise<FaultProxy> {
  const plans: Plan[] = [];
  const ledger = createLedger();
  const agent = new Agent({ keepAlive: true });

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await text(incoming);
    const operation = incoming.headers["x-amz-target"] as string | undefined;
    const request: DynamoRequest = {
      target: operation?.split(".").at(-1) ?? incoming.method ?? "",
      headers: incoming.headers,
      body: sent === "" ? undefined : (JSON.parse(sent) as unknown),
    };
    const body = operation === undefined ? sent : JSON.stringify(withCapacity(request.target, request.body));
    const plan = plans.find(({ left, when }) => left > 0 && when(request));
    if (plan) {
      plan.left -= 1;
      plan.struck += 1;
    }
    const fault = plan?.fault ?? draw(request) ?? FORWARD;
    const meetsReply = REPLY_FAULTS.includes(fault.kind);
    if (!meetsReply) plan?.strike();
    if (fault.kind === "lose-request") {
      incoming.socket.destroy();
      return;
    }
    if (fault.kind === "answer" && fault.carriedOut !== true) {
      answer(response, request, fault);
      return;
    }
    if (fault.kind === "hold-request") await fault.until;

    const reply = await forward(incoming, request, body);
    if (fault.kind === "duplicate") {
      const again = (): Promise<unknown> => forward(incoming, request, body);
      void delay(fault.againAfterMs, undefined, { ref: false })
        .then(again)
        .catch(() => undefined);
    }
    if (meetsReply) plan?.strike();
    if (fault.kind === "hold-reply") await fault.until;
    if (fault.kind === "lose-reply") incoming.socket.destroy();
    else if (fault.kind === "answer") answer(response, request, fault);
    else response.writeHead(reply.status, reply.headers).end(reply.body);
  }

  async function forward({ method = "POST", url, headers: given }: IncomingMessage, request: DynamoRequest, body: string) {
    const headers = { ...given, "content-length": Buffer.byteLength(body) };
    const server = typeof target === "string" ? target : target();
    const send = async (): Promise<IncomingMessage> => {
      const outgoing = httpRequest(server, { agent, method, path: url, headers }).end(body);
      const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
      // The engine ended a connection that was idle, and never saw the request.
      const [response] = await answered.catch((error: unknown) => {
        if (outgoing.reusedSocket && (error as NodeJS.ErrnoException).code === "ECONNRESET") return [undefined];
        throw error;
      });
      return response ?? send();
    };
    const response = await send();
    const reply = { status: response.statusCode ?? 502, headers: response.headers, body: await text(response) };
    ledger.record(request.target, reply.status, "x-amz-target" in given ? reply.body : "");
    return reply;
  }

  // It never ends an idle connection: a request that is sent just then would get no answer, which is a fault that nobody planned.
  const server = createServer({ keepAliveTimeout: 0 }, (incoming, response) => {
    // The client or the engine is gone. Closing the connection is the only response left.
    serve(incoming, response).catch(() => incoming.socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ledger,
    plan(fault, { when = () => true, times = 1 } = {}) {
      let strike = (): void => undefined;
      const first = new Promise<void>((resolve) => (strike = resolve));
      const plan: Plan = { fault, when, left: times, struck: 0, first, strike };
      plans.push(plan);
      return plan;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      agent.destroy();
      await once(server, "close");
    },
  };
}

function answer(
  response: ServerResponse,
  request: DynamoRequest,
  {
    status = 500,
    errorName = "InternalServerError",
    headers = {},
    says = () => ({ message: "Answered by the test" }),
  }: Fault & { kind: "answer" },
): void {
  const body = JSON.stringify({ ...(status >= 300 && { __type: `com.amazonaws.dynamodb.v20120810#${errorName}` }), ...says(request) });
  response.writeHead(status, { "content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "R1", ...headers }).end(body);
}
