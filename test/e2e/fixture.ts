/**
 * One run of the conformance tests against a target: unique keys, leaseIds by the service's clock, requests that are
 * counted, bounded and checked against the guarantees for every response, and a list of the leases that are still held,
 * which are released at the end.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { LEASE_ID, leaseIdAt } from "../support/lease-ids.js";
import { type Reply, replyFrom } from "../support/reply.js";
import { type Document, pathOf } from "./document.js";
import { checkPromises } from "./promises.js";
import type { Need } from "./suite.js";
import { type Principal, type Target, AT_ONCE, fetchOf } from "./target.js";

/** The options of a request. */
export interface Parts {
  /** Text is sent unchanged, everything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly as?: Principal | undefined;
}

/** A target in use. */
export interface Fixture {
  readonly target: Target;
  readonly document: Document;
  /** The number of requests in a race. */
  readonly atOnce: number;
  /** The prefix of every key of this run. */
  readonly prefix: string;
  /** The number of requests sent. */
  readonly sent: number;
  freshKey(): string;
  /** A new leaseId with the time `fromNowMs` from now, by the service's clock. */
  newId(fromNowMs?: number): string;
  /** Returns the reason why the target doesn't meet this need, or undefined if it does. */
  lacks(need: Need): string | undefined;
  send(method: string, path: string, parts?: Parts): Promise<Reply>;
  /** Lets this time pass: by the target's clock if the tests can advance it, otherwise by waiting. */
  pass(ms: number): Promise<void>;
  /** Settles as `reply` does, to a request that the service holds. Its time passes until then, by the target's clock if the tests can advance it. */
  passing<T>(reply: Promise<T>): Promise<T>;
  /** Releases everything that is still held, and closes the target. */
  close(): Promise<void>;
}

/** Longer than a cold start and the service's longest wait. A slower response is a failure. */
const REQUEST_MS = 25_000;
/** The number of concurrent releases at the end. */
const CLOSING_AT_ONCE = 5;
const LEASE = /^\/v1\/(?:locks|runs)\/[^/]+\/leases\/[^/]+/;
const SET = /^\/v1\/lock-sets\/[^/]+/;

/** Begins a run with two requests, for the clock and for the document. */
// Over 60 lines: one model or one server, whose parts share its state.
export async function openFixture(target: Target): Promise<Fixture> {
  const prefix = `e2e-${randomBytes(6).toString("hex")}`;
  const scopes = new Set<string>();
  const held = new Map<string, () => Promise<unknown>>();
  let document: Document | undefined = undefined;
  let keys = 0;
  let sent = 0;
  const { nowMs = Date.now } = target;

  async function send(method: string, path: string, { body, headers = {}, as }: Parts = {}): Promise<Reply> {
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const { scope } = typeof body === "object" ? (body as { readonly scope?: string }) : {};
    if (scope !== undefined) scopes.add(scope);
    sent++;
    const response = await fetchOf(target, as)(target.url + path, {
      method,
      headers: { ...(text !== undefined && { "content-type": "application/json" }), ...headers },
      ...(text !== undefined && { body: text }),
      redirect: "error",
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    const reply = replyFrom(response.status, Object.fromEntries(response.headers), await response.text());
    remember(method, path, body, as, reply);
    if (document) checkPromises(document, { method, path, text, scopes }, reply);
    return reply;
  }

  /** Records the leases that a response reports as held, and forgets those that are no longer held. */
  function remember(method: string, path: string, body: unknown, as: Principal | undefined, { status, body: told }: Reply): void {
    const [lease] = LEASE.exec(path) ?? [];
    if (lease !== undefined && status === 410) held.delete(lease);
    if (status >= 300) return;
    const [set] = SET.exec(path) ?? [];
    if (lease !== undefined) {
      const isRun = told?.state === "succeeded" || told?.state === "failed";
      if (method === "DELETE" || path.endsWith("/outcome") || isRun) held.delete(lease);
      else held.set(lease, () => send("DELETE", lease, { as }));
      const to = (body as { readonly leaseId?: string } | undefined)?.leaseId;
      if (to !== undefined && !path.endsWith("/outcome")) {
        held.delete(lease);
        const handed = lease.replace(LEASE_ID, to);
        held.set(handed, () => send("DELETE", handed, { as }));
      }
    } else if (set !== undefined) {
      const keys = Object.keys((told?.fencingTokens ?? {}) as object);
      if (path.endsWith("/release")) held.delete(set);
      else held.set(set, () => send("POST", `${set}/release`, { body: { keys }, as }));
    }
  }

  const health = await send("GET", "/v1/health");
  expect(health.status, health.text).toBe(200);
  const aheadMs = (health.body.serverTimeMs as number) - nowMs();
  document = (await send("GET", "/v1/openapi.json")).body as Document;
  const known = document;

  return {
    target,
    document: known,
    atOnce: target.limits?.atOnce ?? AT_ONCE,
    prefix,
    get sent() {
      return sent;
    },
    freshKey: () => `${prefix}_${++keys}`,
    newId: (fromNowMs = 0) => leaseIdAt(nowMs() + aheadMs + fromNowMs),
    lacks(need) {
      if (need === "another") return target.asAnother ? undefined : "the target has no second principal";
      if (need === "stranger") return target.asStranger ? undefined : "the target has no principal of another namespace";
      if (need === "operators") return target.servesOperators === false ? "the target serves no operators" : undefined;
      if (!need.startsWith("/")) return `the target has no ${need}`;
      return pathOf(known, need) === undefined ? `the service has no ${need} yet` : undefined;
    },
    send,
    pass: (ms) => target.pass?.(ms) ?? sleep(ms),
    passing: (reply) => target.passing?.(reply) ?? reply,
    async close() {
      try {
        const left = [...held.values()];
        while (left.length > 0) await Promise.all(left.splice(0, CLOSING_AT_ONCE).map((release) => release()));
      } finally {
        await target.close?.();
      }
    },
  };
}
