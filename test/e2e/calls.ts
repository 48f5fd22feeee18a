/** Short forms of the requests that the tests make often. They check nothing unless their name says so. */
import { expect } from "vitest";
import type { Reply } from "../support/reply.js";
import type { Fixture } from "./fixture.js";

/** A PUT of a lease, and its key and leaseId. */
export interface Put extends Reply {
  readonly key: string;
  readonly leaseId: string;
  /** The lease's path. */
  readonly url: string;
}

/** The options of a PUT besides its body. */
export interface PutParts {
  readonly leaseId?: string;
  readonly as?: string;
  /** The `Prefer` header. */
  readonly prefer?: string;
}

/** The shortest time for which a result may be stored. */
export const KEEP_RESULT_MS = 60_000;

/** The options of a request. */
interface Sent {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly as?: string | undefined;
}

/** The parts of a fixture by which the calls are made. */
export interface Sender {
  freshKey(): string;
  newId(fromNowMs?: number): string;
  send(method: string, path: string, parts?: Sent): Promise<Reply>;
}

/** The calls of a fixture that may only become available later. */
export interface Calls<F extends Sender = Fixture> {
  fixture(): F;
  freshKey(): string;
  newId(fromNowMs?: number): string;
  send(method: string, path: string, parts?: Sent): Promise<Reply>;
  get(path: string, headers?: Readonly<Record<string, string>>, as?: string): Promise<Reply>;
  post(path: string, body?: unknown, as?: string): Promise<Reply>;
  /** Acquires, by default with a new leaseId. */
  put(key: string, body?: object, parts?: PutParts): Promise<Put>;
  /** The same with waiting, for no time at all. */
  queue(key: string, body?: object, parts?: PutParts): Promise<Put>;
  /** Acquires, and checks for a 201. @default a fresh key */
  hold(key?: string, body?: object, parts?: PutParts): Promise<Put>;
  /** Releases, and returns the `Lease-State` or the status of the refusal. */
  release(lease: { readonly url: string }, as?: string): Promise<string | number>;
  /** Starts a run, by default one whose result is stored for the shortest time. */
  start(key: string, body?: object, parts?: PutParts): Promise<Put>;
  /** Starts a run, and checks for a 201. */
  begin(key?: string, body?: object, parts?: PutParts): Promise<Put>;
  complete(run: { readonly url: string }, outcome: unknown, as?: string): Promise<Reply>;
}

/** Creates the calls of `fixture()`. What a start asks for is `started`, and what its call says. */
export function callsOf<F extends Sender = Fixture>(fixture: () => F, started: object = { keepResultMs: KEEP_RESULT_MS }): Calls<F> {
  const put = async (kind: string, key: string, body: object, { leaseId = fixture().newId(), as, prefer }: PutParts = {}): Promise<Put> => {
    const url = `/v1/${kind}/${key}/leases/${leaseId}`;
    const reply = await fixture().send("PUT", url, { body, as, ...(prefer !== undefined && { headers: { prefer } }) });
    return { ...reply, key, leaseId, url };
  };
  const granted = (reply: Put): Put => {
    expect(reply.status, reply.text).toBe(201);
    return reply;
  };
  const calls: Calls<F> = {
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
    start: (key, body = {}, parts) => put("runs", key, { ...started, ...body }, parts),
    begin: async (key = calls.freshKey(), body, parts) => granted(await calls.start(key, body, parts)),
    complete: ({ url }, outcome, as) => fixture().send("PUT", `${url}/outcome`, { body: outcome, as }),
  };
  return calls;
}

/** The status of a refusal with its code, or the status alone. */
export function told({ status, body }: Reply): readonly [status: number, code: string | undefined] {
  return [status, (body as { readonly code?: string } | undefined)?.code];
}
