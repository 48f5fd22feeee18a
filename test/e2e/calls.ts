/** The requests that the tests make again and again, for short. Nothing is expected here but where a name says so. */
import { expect } from "vitest";
import type { Reply } from "../support/reply.js";
import type { Parts, Fixture } from "./fixture.js";
import type { Principal } from "./target.js";

/** A PUT of a lease, and what it was of. */
export interface Put extends Reply {
  readonly key: string;
  readonly leaseId: string;
  /** The lease's path. */
  readonly url: string;
}

/** The options of a PUT besides its body. */
export interface PutParts {
  readonly leaseId?: string;
  readonly as?: Principal;
  /** The `Prefer` header. */
  readonly prefer?: string;
}

/** The shortest a result may be kept. */
export const KEEP_RESULT_MS = 60_000;

/** The calls of a scene that may only be there when they are made. */
export interface Calls {
  fixture(): Fixture;
  freshKey(): string;
  newId(fromNowMs?: number): string;
  send(method: string, path: string, parts?: Parts): Promise<Reply>;
  get(path: string, headers?: Readonly<Record<string, string>>, as?: Principal): Promise<Reply>;
  post(path: string, body?: unknown, as?: Principal): Promise<Reply>;
  /** An acquire under a new leaseId, if none is given. */
  put(key: string, body?: object, parts?: PutParts): Promise<Put>;
  /** The same with a wish to wait, for no time at all. */
  queue(key: string, body?: object, parts?: PutParts): Promise<Put>;
  /** An acquire that must be a 201. @default a key of its own */
  hold(key?: string, body?: object, parts?: PutParts): Promise<Put>;
  /** The `Lease-State` of a DELETE, or the status of its refusal. */
  release(lease: { readonly url: string }, as?: Principal): Promise<string | number>;
  /** A start, its result kept for the shortest time. */
  start(key: string, body?: object, parts?: PutParts): Promise<Put>;
  /** A start that must be a 201. */
  begin(key?: string, body?: object, parts?: PutParts): Promise<Put>;
  complete(run: { readonly url: string }, outcome: unknown, as?: Principal): Promise<Reply>;
}

/** The calls of `scene()`. */
export function callsOf(fixture: () => Fixture): Calls {
  const put = async (kind: string, key: string, body: object, { leaseId = fixture().newId(), as, prefer }: PutParts = {}): Promise<Put> => {
    const url = `/v1/${kind}/${key}/leases/${leaseId}`;
    const reply = await fixture().send("PUT", url, { body, as, ...(prefer !== undefined && { headers: { prefer } }) });
    return { ...reply, key, leaseId, url };
  };
  const granted = (reply: Put): Put => {
    expect(reply.status, reply.text).toBe(201);
    return reply;
  };
  const calls: Calls = {
    fixture,
    freshKey: () => fixture().freshKey(),
    newId: (fromNowMs) => fixture().newId(fromNowMs),
    send: (method, path, parts) => fixture().send(method, path, parts),
    get: (path, headers = {}, as) => fixture().send("GET", path, { headers, as }),
    post: (path, body = {}, as) => fixture().send("POST", path, { body, as }),
    put: (key, body = {}, parts) => put("locks", key, body, parts),
    queue: (key, body = {}, parts) => put("locks", key, body, { prefer: "wait=0", ...parts }),
    hold: async (key = calls.freshKey(), body, parts) => granted(await calls.put(key, body, parts)),
    async release({ url }, as) {
      const { status, headers } = await fixture().send("DELETE", url, { as });
      return status === 204 ? (headers["lease-state"] ?? "") : status;
    },
    start: (key, body = {}, parts) => put("runs", key, { keepResultMs: KEEP_RESULT_MS, ...body }, parts),
    begin: async (key = calls.freshKey(), body, parts) => granted(await calls.start(key, body, parts)),
    complete: ({ url }, outcome, as) => fixture().send("PUT", `${url}/outcome`, { body: outcome, as }),
  };
  return calls;
}

/** The status of a refusal with its code, or the status alone. */
export function told({ status, body }: Reply): readonly [status: number, code: string | undefined] {
  return [status, (body as { readonly code?: string } | undefined)?.code];
}
