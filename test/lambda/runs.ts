/** Short forms of requests about runs over HTTP: their URLs, starts, ends and inspections. */
import { expect } from "vitest";
import type { HttpService, RequestParts } from "../support/http-service.js";
import { leaseIdAt } from "../support/lease-ids.js";
import type { Reply } from "../support/reply.js";

/** A run that was started: 201. */
export interface Begun {
  readonly key: string;
  readonly leaseId: string;
  /** The URL of its lease. */
  readonly url: string;
  readonly reply: Reply;
}

/** The options of a start. */
export type StartParts = Omit<RequestParts, "body"> & { readonly body?: object };

/** The calls of the runs of one service. */
export interface RunCalls {
  freshKey(): string;
  newId(): string;
  url(key: string, leaseId?: string): string;
  /** Starts with a new leaseId, with any answer. */
  ask(key: string, parts?: StartParts): Promise<Reply>;
  /** Starts, and checks for a 201. */
  begin(key?: string, parts?: StartParts): Promise<Begun>;
  complete(url: string, outcome: unknown, as?: string): Promise<Reply>;
  /** Starts and completes a run, and returns its key. */
  finished(outcome: object, parts?: StartParts, key?: string): Promise<string>;
  look(key: string, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  reset(key: string, reason?: string): Promise<Reply>;
}

/** Creates the calls for runs of `service`, with keys that begin with `prefix`. */
export function runsOf(service: () => HttpService, prefix: string): RunCalls {
  let keys = 0;
  const calls: RunCalls = {
    freshKey: () => `${prefix}_${++keys}`,
    newId: () => leaseIdAt(service().clock.wallMs()),
    url: (key, leaseId = calls.newId()) => `/v1/runs/${key}/leases/${leaseId}`,
    ask: (key, parts) => service().send("PUT", calls.url(key), parts),
    async begin(key = calls.freshKey(), parts = {}) {
      const leaseId = calls.newId();
      const url = calls.url(key, leaseId);
      const reply = await service().send("PUT", url, parts);
      expect([reply.status, reply.body.state]).toEqual([201, "running"]);
      return { key, leaseId, url, reply };
    },
    complete: (url, outcome, as) => service().send("PUT", `${url}/outcome`, { body: outcome, ...(as !== undefined && { as }) }),
    async finished(outcome, parts, key) {
      const run = await calls.begin(key, parts);
      expect((await calls.complete(run.url, outcome)).status).toBe(200);
      return run.key;
    },
    look: (key, headers = {}) => service().send("GET", `/v1/runs/${key}`, { headers }),
    reset: (key, reason = "stuck") => service().send("POST", `/v1/runs/${key}/reset`, { body: { reason } }),
  };
  return calls;
}
