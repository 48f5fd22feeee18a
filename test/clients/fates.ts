/** Answers that scenes give in place of the service's own. */
import type { Fate, HttpAnswer } from "./scripted-service.js";

/** An answer of the gateway before the service, which never got the request. */
export const gateway = (status: number, message = "Forbidden"): Fate => ({ does: "answer", answer: { status, body: { message } } });

/** A refusal of the service. */
export const problem = (status: number, code: string, more: object = {}): Fate => ({
  does: "answer",
  answer: {
    status,
    headers: { "content-type": "application/problem+json" },
    body: {
      type: `/problems/${code}`,
      title: code,
      status,
      code,
      detail: `scripted ${code}`,
      definite: status < 500,
      retry: "later",
      ...more,
    },
  },
});

/** The service carries it out, and this is the body of its answer. */
export const withBody = (how: (body: Readonly<Record<string, unknown>>) => unknown): Fate => ({
  does: "change",
  to: (honest): HttpAnswer => (honest.status < 300 ? { ...honest, body: how((honest.body ?? {}) as Record<string, unknown>) } : honest),
});

/** Answers of success by another server, which a name or a proxy may lead to. */
const STRANGERS: Readonly<Record<string, Fate>> = {
  "a web page": { does: "answer", answer: { status: 200, headers: { "content-type": "text/html" }, body: "<html>Welcome</html>" } },
  "another server's {}": { does: "answer", answer: { status: 200, body: {} } },
};
const OTHER_LEASE = "018f0000-0000-7000-8000-000000000000";

/** Failures that say nothing about whether the request was carried out, or of a server before the service. */
export const FAILURES: Readonly<Record<string, Fate>> = {
  ...STRANGERS,
  "a gateway's 401": gateway(401, "Unauthorized"),
  "a gateway's 403": gateway(403),
  "a gateway's 404": gateway(404, "Not Found"),
  "a gateway's 410": gateway(410, "Gone"),
  "a gateway's 422": gateway(422, "Unprocessable"),
  "a gateway's 429": gateway(429, "Too Many Requests"),
  "a gateway's 500": gateway(500, "Internal Server Error"),
  "a gateway's 503": gateway(503, "Service Unavailable"),
  "a 503 whose retryAfterMs is null": problem(503, "unavailable", { retry: "same", retryAfterMs: null }),
  "what is no HTTP": { does: "bytes", bytes: "SSH-2.0-OpenSSH_9.6\r\n" },
  "101 headers": { does: "bytes", bytes: `HTTP/1.1 200 OK\r\n${Array.from({ length: 101 }, (_, at) => `x-${at}: 1\r\n`).join("")}\r\n{}` },
  "a header that is too long": { does: "bytes", bytes: `HTTP/1.1 200 OK\r\nx-long: ${"x".repeat(70_000)}\r\n\r\n{}` },
  "a cut connection": { does: "cut", carriedOut: false },
};

/** Answers with a status of success that prove nothing about the lease that was asked for. */
export const NO_PROOFS: Readonly<Record<string, Fate>> = {
  ...STRANGERS,
  "200 with {}": withBody(() => ({})),
  "a list": withBody((lease) => [lease]),
  "a number": withBody(() => 30_000),
  "a body that is cut": { does: "bytes", carriedOut: true, bytes: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n40\r\n{"key":' },
  "an answer about another key": withBody((lease) => ({ ...lease, key: "another" })),
  "an answer about another lease": withBody((lease) => ({ ...lease, leaseId: OTHER_LEASE })),
  "a lease without its time": withBody(({ remainingMs: _, ...lease }) => lease),
  "a lease whose time is a text": withBody((lease) => ({ ...lease, remainingMs: "3000" })),
  "a lease without its token": withBody(({ fencingToken: _, ...lease }) => lease),
};
