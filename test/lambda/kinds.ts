/**
 * Leases of every kind over HTTP: the common requests of tests of modes, permits, scopes and sets. They check nothing;
 * a test reads the replies.
 */
import type { HttpService } from "../support/http-service.js";
import { leaseIdAt } from "../support/lease-ids.js";
import type { Reply } from "../support/reply.js";

/** A PUT, and its key and leaseId. */
export interface Asked extends Reply {
  readonly key: string;
  readonly leaseId: string;
  readonly url: string;
}

/** The options of an acquire besides its body. */
export interface AskedAs {
  readonly as?: string;
  readonly leaseId?: string;
}

/** The requests of a test file, each on `service()`. */
export interface Kinds {
  /** A key that no other test of the file uses. */
  freshKey(): string;
  /** Creates a leaseId with the current time. */
  newId(): string;
  put(key: string, body?: object, asked?: AskedAs): Promise<Asked>;
  /** The same with waiting, for no time at all. */
  queue(key: string, body?: object, asked?: AskedAs): Promise<Asked>;
  get(url: string, as?: string): Promise<Reply>;
  post(url: string, body?: object, as?: string): Promise<Reply>;
  /** Releases, and returns the `Lease-State` or the status of the refusal. */
  release(url: string, as?: string): Promise<string | number>;
}

/** Creates requests on keys that begin with `category`. */
export function kindsOn(service: () => HttpService, category: string): Kinds {
  let used = 0;
  const caller = (as: string | undefined) => (as === undefined ? {} : { as });
  const newId = (): string => leaseIdAt(service().clock.wallMs());
  return {
    freshKey: () => `${category}_${++used}`,
    newId,
    async put(key, body = {}, { as, leaseId = newId() } = {}) {
      const url = `/v1/locks/${key}/leases/${leaseId}`;
      return { ...(await service().send("PUT", url, { body, ...caller(as) })), key, leaseId, url };
    },
    async queue(key, body = {}, { as, leaseId = newId() } = {}) {
      const url = `/v1/locks/${key}/leases/${leaseId}`;
      const headers = { prefer: "wait=0" };
      return { ...(await service().send("PUT", url, { body, headers, ...caller(as) })), key, leaseId, url };
    },
    get: (url, as) => service().send("GET", url, caller(as)),
    post: (url, body = {}, as) => service().send("POST", url, { body, ...caller(as) }),
    async release(url, as) {
      const { status, headers } = await service().send("DELETE", url, caller(as));
      return status === 204 ? (headers["lease-state"] ?? "") : status;
    },
  };
}

/** The status of a refusal with its code, or the status alone. */
export function told({ status, body }: Reply): readonly [status: number, code: string | undefined] {
  return [status, (body as { readonly code?: string } | undefined)?.code];
}
