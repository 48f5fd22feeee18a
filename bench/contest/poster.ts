/** Requests to DynamoDB without an SDK. */
import { Agent } from "node:http";
import { systemClock } from "../../lib/core/time.js";
import { send } from "../../lib/store/dynamo/http-sender.js";
import { type RawHeaders, signer } from "../../lib/store/dynamo/signature.js";

/** Sends a request's body to one operation and returns the response. */
export type Poster = (body: string) => Promise<{ readonly status: number; readonly text: string }>;

const BOUNDS = { connectMs: 1000, answerMs: 10_000 } as const;

/** Sends signed requests over connections that are kept: the least that a request costs on Node. */
export function poster(endpoint: string, operation: string): Poster {
  const { hostname, port } = new URL(endpoint);
  const agent = new Agent({ keepAlive: true, maxSockets: 50 });
  const destination = { protocol: "http:", hostname, port: Number(port), path: "/", agent } as const;
  const sign = signing(endpoint, operation);
  return (body) => send(destination, sign(body), body, BOUNDS, systemClock);
}

/** Sends the same requests by the global `fetch`. */
export function fetchPoster(endpoint: string, operation: string): Poster {
  const sign = signing(endpoint, operation);
  return async (body) => {
    const raw = sign(body);
    const headers = raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1]!] as [string, string]] : []));
    const response = await fetch(endpoint, { method: "POST", headers, body });
    return { status: response.status, text: await response.text() };
  };
}

function signing(endpoint: string, operation: string): (body: string) => RawHeaders {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const sign = signer(credentials, { host: new URL(endpoint).host, path: "/", region: "us-east-1", service: "dynamodb" });
  return (body) => sign(`DynamoDB_20120810.${operation}`, body, systemClock.wallMs());
}
