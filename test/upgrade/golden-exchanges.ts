/**
 * The scenes by which golden requests and answers are made: each operation, with each status of its answers, and each code of a refusal. The
 * SDK's own code makes the requests, and the service's handler answers them, on records in memory with a clock that the scene turns. Everything
 * that a default could change is given.
 *
 * The exchanges of a scene may only grow within a version of the contract (golden-exchanges.test.ts).
 */
import { createHandler } from "../../lambda/handler.js";
import { type Operation, type RequestOf, callOf } from "../../lib/core/api/call.js";
import type { WakeTarget } from "../../lib/core/api/locks.js";
import { refuse } from "../../lib/core/errors.js";
import { createPolicy } from "../../lib/core/policy.js";
import { httpApi } from "../../lib/client/wire/http.js";
import { createMemoryStore } from "../support/memory-store.js";
import { KeyContended, type LockStore, StoreNotConfigured, StoreUnavailable, UnreadableRecord } from "../../lib/store/port.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { fetchFrom } from "../support/handler-fetch.js";
import type { EventParts } from "../support/http-event.js";
import { id, START_MS } from "./golden-scenes.js";

/** A request as it is sent. */
export interface SentRequest {
  readonly method: string;
  /** The path with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The JSON of the body. */
  readonly body?: unknown;
}

/** An answer as it is received. */
export interface SentAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** A request, its answer, and what the SDK reads in that. */
export interface Exchange {
  readonly request: SentRequest;
  readonly answer: SentAnswer;
  readonly read: unknown;
}

/** Replaces messages between the SDK and the service of a scene, such as by golden ones. */
export interface Between {
  readonly request?: (made: SentRequest, index: number) => SentRequest;
  readonly answer?: (made: SentAnswer, index: number) => SentAnswer;
}

/** The special parts of one request of a scene. */
interface Unlike {
  /** The time since the scene's begin, in ms. @default that of the request before */
  readonly atMs?: number;
  /** Replaces parts of the SDK's request. */
  readonly edit?: Partial<SentRequest>;
  /** Replaces parts of the gateway's event. */
  readonly event?: Partial<EventParts>;
  /** Replaces the store's answer to a command. */
  readonly apply?: () => Promise<unknown>;
  /** The doors that the table lists. */
  readonly doors?: readonly string[];
}

/** Makes a request, of what the SDK read in the answers before it. */
type Step = (read: readonly unknown[]) => readonly [operation: Operation, request: object, unlike: Unlike];

function step<Name extends Operation>(operation: Name, request: RequestOf<Name> | object, unlike: Unlike = {}): Step {
  return () => [operation, request, unlike];
}

/** Asks again with the tag of the answer before. */
function unchanged(operation: Operation, request: object): Step {
  return (read) => [operation, { ...request, ifNoneMatch: (read.at(-1) as { readonly tag: string }).tag, waitMs: 5000 }, {}];
}

const [A, B, C, D, E] = [id(1), id(2), id(3), id(4), id(5)];
const MINUTE = 60_000;
const [lock, run, limit] = [{ key: "LOCK" }, { key: "RUN" }, { key: "LIMIT" }];
const [a, b, c, d, e] = [A, B, C, D, E].map((leaseId) => ({ ...lock, leaseId })) as [Ref, Ref, Ref, Ref, Ref];
const [ra, rb, rc] = [A, B, C].map((leaseId) => ({ ...run, leaseId })) as [Ref, Ref, Ref];
interface Ref {
  readonly key: string;
  readonly leaseId: string;
}

const LEASE = { leaseMs: 10_000, owner: "worker-1" };
const META = { meta: { url: "https://example.com", n: [1] } };
const PERMIT = { ...LEASE, limit: 3, permits: 2 };
const READER = { ...LEASE, mode: "shared" };
const SET = { keys: ["LOCK", "LOCK_2"] };
const ACQUIRE_SET = step("acquireSet", {
  leaseId: A,
  locks: [
    { key: "LOCK", mode: "exclusive" },
    { key: "LOCK_2", mode: "shared" },
  ],
  ...LEASE,
  ...META,
});
const TOKEN = START_MS;
const TASK: WakeTarget = { taskToken: "T".repeat(40) };
const ASLEEP = { ...LEASE, leaseMs: 5 * MINUTE, waitMs: 10 * MINUTE };
const STARTED = { ...LEASE, fingerprint: "of 1500", keepResultMs: 60 * MINUTE, maxAttempts: 3 };
const RATES = { rates: [{ count: 10, perMs: MINUTE, burst: 4 }] };
const PAGE = { prefix: "L", max: 10, cursor: "LIM" };
const ENDED = { state: "succeeded", result: { ok: true } };

/** Answers each command with this refusal, as if the record were such. */
function refusedBy(...parts: Parameters<typeof refuse>): Unlike {
  return { apply: async () => ({ answer: refuse(...parts), events: [] }) };
}

/** Fails each command with this error. */
function failsBy(error: Error): Unlike {
  return { apply: () => Promise.reject(error) };
}

const SCENES: Readonly<Record<string, readonly Step[]>> = {
  "a lock": [
    step("acquire", { ...a, ...LEASE, ...META }),
    step("acquire", { ...a, ...LEASE, ...META }, { atMs: 100 }),
    step("check", a),
    step("renew", { ...a, leaseMs: 20_000, ...META }),
    step("acquire", { ...b, ...LEASE }),
    step("acquire", { ...b, ...LEASE, priority: 5, waitMs: 0 }),
    step("check", b, { atMs: 200 }),
    step("inspect", lock),
    unchanged("inspect", lock),
    step("list", {}),
    step("list", { ...PAGE, owner: "worker-1" }),
    step("transfer", { ...a, to: { leaseId: C, owner: "worker-2", leaseMs: 15_000, ...META } }),
    step("release", a, { atMs: 300 }),
    step("release", c),
    step("inspect", lock, { atMs: 350 }),
    step("acquire", { ...b, ...LEASE, priority: 5, waitMs: 0 }, { atMs: 400 }),
    step("check", a),
    step("acquire", { ...a, ...LEASE }),
    step("acquire", { ...b, ...LEASE, owner: "worker-3" }),
    step("acquire", { key: "LOCK", leaseId: "01000000-0000-7000-8000-000000000000", ...LEASE }),
    step("release", d),
    step("inspect", lock, { atMs: MINUTE }),
    step("check", b, { atMs: 10 * MINUTE }),
  ],
  "a lock that is broken": [
    step("acquire", { ...a, ...LEASE }),
    step("breakHold", { ...lock, fencingToken: TOKEN, reason: "stuck", drainMs: 5_000 }),
    step("inspect", lock, { atMs: 100 }),
    step("breakHold", { ...lock, fencingToken: TOKEN, reason: "stuck", drainMs: 0 }),
    step("renew", a),
    step("acquire", { ...b, ...LEASE }, { atMs: MINUTE }),
    step("breakHold", { ...lock, fencingToken: 1, reason: "stuck" }),
    step("breakHold", { key: "NONE", fencingToken: TOKEN, reason: "stuck" }),
  ],
  "permits, readers and a scope": [
    step("acquire", { ...a, ...PERMIT }),
    step("acquire", { ...b, ...PERMIT, limit: 4 }),
    step("acquire", { ...b, ...PERMIT, waitMs: 0 }),
    step("inspect", lock),
    step("acquire", { key: "READ", leaseId: A, ...READER }),
    step("acquire", { key: "READ", leaseId: B, ...READER }),
    step("changeMode", { key: "READ", leaseId: A, mode: "exclusive", fencingToken: TOKEN }),
    step("changeMode", { key: "READ", leaseId: B, mode: "exclusive", fencingToken: TOKEN + 1 }),
    step("release", { key: "READ", leaseId: B }),
    (read) => ["changeMode", { key: "READ", leaseId: A, mode: "exclusive", fencingToken: tokenIn(read[4]) }, {}],
    (read) => ["changeMode", { key: "READ", leaseId: A, mode: "exclusive", fencingToken: tokenIn(read[4]) }, {}],
    step("changeMode", { key: "READ", leaseId: A, mode: "shared", fencingToken: 1 }),
    step("acquire", { key: "SCOPE", leaseId: A, ...LEASE, scope: "scope-of-a-request" }),
    step("acquire", { key: "SCOPE", leaseId: B, ...LEASE, scope: "scope-of-a-request" }),
  ],
  conditions: [
    step("acquire", { ...a, ...LEASE }),
    step("waitForCondition", { ...a, condition: "full", to: { leaseId: B, ...LEASE, ...META, priority: 1 } }),
    step("acquire", { ...c, ...LEASE }),
    step("inspect", lock, { atMs: 100 }),
    step("check", b),
    step("notify", { ...c, condition: "full", sequence: 1, all: false }),
    step("notify", { ...c, condition: "full", sequence: 1, all: false }),
    step("acquire", { key: "READ", leaseId: D, ...READER }),
    step("notify", { key: "READ", leaseId: D, condition: "full", all: true }),
  ],
  sets: [
    ACQUIRE_SET,
    ACQUIRE_SET,
    step("acquireSet", { leaseId: B, locks: [{ key: "LOCK" }], ...LEASE, scope: "scope-of-a-request" }),
    step("acquireSet", { leaseId: B, locks: [{ key: "LOCK" }] }, { edit: { body: { keys: ["LOCK"], ...LEASE } } }),
    step("renewSet", { leaseId: A, ...SET, leaseMs: 20_000 }, { atMs: 100 }),
    step("renewMany", { leases: [{ ...a, leaseMs: 30_000 }, e] }),
    step("releaseSet", { leaseId: A, ...SET }, { atMs: 200 }),
    step("renewSet", { leaseId: A, ...SET }),
  ],
  "sleepers and a tied lease": [
    step("acquire", { ...a, ...LEASE, leaseMs: 5 * MINUTE, tie: { executionArn: "arn:aws:states:eu-west-1:1:execution:machine:name" } }),
    step("acquire", { ...b, ...ASLEEP, wake: TASK }),
    step("acquire", { ...c, ...ASLEEP, wake: { callbackId: "C".repeat(40) } }),
    step("acquire", { ...d, ...ASLEEP }, { edit: { headers: { "holdfast-task-token": "U".repeat(40) } } }),
    step("inspect", lock),
  ],
  "a run that succeeds": [
    step("start", { ...ra, ...STARTED }),
    step("start", { ...ra, ...STARTED }, { atMs: 100 }),
    step("start", { ...rb, ...STARTED, waitMs: 5000 }),
    step("renew", { ...ra, kind: "runs", leaseMs: 20_000, checkpoint: { page: 7 }, sequence: 1 }),
    step("check", { ...ra, kind: "runs" }),
    step("run", run),
    step("resetRun", { ...run, reason: "stuck" }),
    step("complete", { ...ra, outcome: ENDED }, { atMs: 200 }),
    step("complete", { ...ra, outcome: ENDED }),
    step("complete", { ...ra, outcome: { state: "succeeded", result: 2 } }),
    step("start", { ...rb, ...STARTED }, { atMs: 300 }),
    step("start", { ...rc, ...STARTED, fingerprint: "of 1600" }),
    step("run", run),
    unchanged("run", run),
    step("runs", {}),
    step("runs", { prefix: "R", max: 10, cursor: "RA", state: "succeeded" }),
    step("resetRun", { ...run, reason: "done wrong", fencingToken: 1 }),
    (read) => ["resetRun", { ...run, reason: "done wrong", fencingToken: tokenIn(read[0]) }, {}],
    step("run", run),
  ],
  "a run that fails": [
    step("start", { ...ra, ...STARTED, maxAttempts: 2 }),
    step("complete", { ...ra, outcome: { state: "failed", error: { name: "Error" }, retryable: true } }, { atMs: 100 }),
    step("run", run),
    step("start", { ...rb, ...STARTED, maxAttempts: 2 }, { atMs: 200 }),
    step("renew", { ...rb, kind: "runs", checkpoint: 1 }),
    step("run", run, { atMs: MINUTE }),
    step("start", { ...rc, ...STARTED, maxAttempts: 2 }),
    step("start", { ...rc, ...STARTED, maxAttempts: 3 }),
    step("renew", { ...rb, kind: "runs" }),
    step("complete", { ...rc, outcome: { state: "failed", error: { name: "Error" }, retryable: false } }, { atMs: MINUTE + 100 }),
    step("start", { ...rb, ...STARTED }),
  ],
  "a run without a result": [
    step("start", { ...ra, ...LEASE, keepResultMs: "forever" }),
    step("release", { ...ra, kind: "runs" }),
    step("start", { ...rb, ...LEASE, keepResultMs: "forever" }),
    step("complete", { ...rb, outcome: { state: "succeeded", resultOmitted: true } }),
    step("start", { ...rc, ...LEASE, keepResultMs: "forever" }),
    step("run", run),
  ],
  "a limit": [
    step("take", { ...limit, ...RATES, cost: 3, waitMs: 0 }),
    step("take", { ...limit, ...RATES, cost: 3, waitMs: 30_000 }, { atMs: 100 }),
    step("take", { ...limit, ...RATES, cost: 4, waitMs: 0 }),
    step("take", { ...limit, rates: [{ count: 20, perMs: MINUTE, burst: 4 }] }),
    step("limit", limit),
    step("limits", {}),
    step("limits", PAGE),
    step("resetLimit", { ...limit, reason: "the partner said so" }),
    step("limit", limit),
    step("limit", { key: "NONE" }),
  ],
  "a limit that is shut": [
    step("shutLimit", { ...limit, ...RATES, forMs: 60_000, reason: "the partner asked" }),
    step("take", { ...limit, ...RATES }),
    step("shutLimit", { ...limit, rates: [{ count: 20, perMs: MINUTE, burst: 4 }], forMs: 1, reason: "x" }),
  ],
  "the service itself": [
    step("health", {}),
    step("health", { deep: "1", caller: "1" }),
    step("health", {}, { edit: { path: "/v1/openapi.json" } }),
  ],
  "a service of several doors": [step("health", { caller: "1" }, { doors: ["https://a.example", "https://b.example"] })],
  "requests that break a rule": [
    step("acquire", { ...a, leaseMs: 5 }),
    step("acquire", { ...a, ...LEASE }, { edit: { body: { ...LEASE, ttl: 5 } } }),
    step("acquire", { ...a, ...LEASE, owner: "o".repeat(16 * 1024) }),
    step("acquire", { ...a, ...LEASE }, { edit: { headers: { "content-type": "text/plain" } } }),
    step("acquire", { ...a, ...LEASE }, { edit: { method: "PATCH" } }),
    step("acquire", { ...a, ...LEASE }, { edit: { path: "/v1/nothing" } }),
    step("acquire", { ...a, ...LEASE }, { event: { authorizer: null } }),
  ],
  "a service that can't decide": [
    step("acquire", { ...a, ...LEASE }, { event: { timeEpoch: START_MS + MINUTE } }),
    step("acquire", { ...a, ...LEASE }, { event: { timeEpoch: null } }),
    step("acquire", { ...a, ...LEASE }, failsBy(new KeyContended("changed"))),
    step("acquire", { ...a, ...LEASE }, failsBy(new StoreUnavailable("slow down", true, true))),
    step("acquire", { ...a, ...LEASE }, failsBy(new StoreUnavailable("gone", false, false))),
    step("acquire", { ...a, ...LEASE }, failsBy(new StoreUnavailable("refused", true, false))),
    step("acquire", { ...a, ...LEASE }, failsBy(new StoreNotConfigured("no table", true))),
    step("acquire", { ...a, ...LEASE }, failsBy(new UnreadableRecord("newer-format", "the lock has format 9"))),
    step("acquire", { ...a, ...LEASE }, failsBy(new UnreadableRecord("older-format", "the lock has format 1"))),
    step("acquire", { ...a, ...LEASE }, failsBy(new UnreadableRecord("unreadable-record", "the lock is damaged"))),
    step("acquire", { ...a, ...LEASE }, failsBy(new Error("a mistake"))),
    step("acquire", { ...a, ...LEASE, waitMs: 0 }, refusedBy("queue-full", { retryAfterMs: 1000 })),
    step("acquire", { ...a, ...LEASE }, refusedBy("key-full", { retryAfterMs: 1000 })),
    step("acquire", { ...a, ...LEASE }, refusedBy("lease-id-time", { serverTimeMs: START_MS, leaseIdAboveMs: START_MS + 1 })),
    step("acquire", { ...a, ...READER }, refusedBy("locked", { retryAfterMs: 1000, holders: [], holdersOmitted: 3 })),
  ],
};

/** The names of all scenes. */
export const SCENE_NAMES = Object.keys(SCENES);

function tokenIn(read: unknown): number {
  return (read as { readonly lease: { readonly fencingToken: number } }).lease.fencingToken;
}

/** Plays a scene. Returns its exchanges; with `between`, what is sent and read in that case. */
export async function play(scene: string, between: Between = {}): Promise<readonly Exchange[]> {
  const clock = new VirtualClock(START_MS);
  const store = createMemoryStore({ policy: createPolicy({ clockErrorMs: 500, retentionMs: 86_400_000 }), clock });
  const exchanges: Exchange[] = [];
  for (const [index, next] of (SCENES[scene] ?? []).entries()) {
    const [operation, asked, { atMs = 0, edit, event, apply, doors }] = next(exchanges.map(({ read }) => read));
    await clock.advance(Math.max(0, START_MS + atMs - clock.wallMs()));
    const handler = createHandler({
      ...{ clock, serverWaitMs: 0, sleepers: { put: async () => undefined }, log: () => undefined, onFailure: () => undefined },
      store: { ...store, ...(apply && { apply }), ...(doors && { doors: async () => doors }) } as LockStore,
    });
    const service = fetchFrom(handler, clock, event);
    let sent!: Omit<Exchange, "read">;
    const fetch: typeof globalThis.fetch = async (url, { method = "", headers = {}, body } = {}) => {
      const made = {
        method,
        path: (url as string).replace(URL_OF, ""),
        headers: headers as SentRequest["headers"],
        ...jsonIn(body as string),
      };
      const request = between.request?.(edited(made, edit), index) ?? edited(made, edit);
      const text = request.body === undefined ? {} : { body: JSON.stringify(request.body) };
      const answered = answerIn(
        await service(URL_OF + request.path, { method: request.method, headers: request.headers, ...text }),
        request,
      );
      const answer = between.answer?.(await answered, index) ?? (await answered);
      sent = { request, answer };
      return new Response(answer.body === undefined ? null : JSON.stringify(answer.body), {
        status: answer.status,
        headers: answer.headers,
      });
    };
    const read = await callOf(httpApi({ url: URL_OF, fetch }))(operation, asked as never).catch(() => null);
    // The status stands in the answer already.
    const text = JSON.stringify(read, (name, value: unknown) => (name === "httpStatus" ? undefined : value));
    exchanges.push({ ...sent, read: JSON.parse(text) as unknown });
  }
  return exchanges;
}

const URL_OF = "https://api.example.com";

function edited({ headers, ...made }: SentRequest, { headers: others, ...edit }: Partial<SentRequest> = {}): SentRequest {
  return { ...made, ...edit, headers: { ...headers, ...others } };
}

function jsonIn(text: string | undefined | null): { readonly body?: unknown } {
  return text ? { body: JSON.parse(text) as unknown } : {};
}

/** Returns the answer. The OpenAPI document is cut to its operations and their paths: the exchanges show the rest. */
async function answerIn(response: Response, { path }: SentRequest): Promise<SentAnswer> {
  const { status, headers } = response;
  const { body } = jsonIn(await response.text());
  const answer = { status, headers: Object.fromEntries(headers) };
  if (body === undefined) return answer;
  if (!path.endsWith("/openapi.json")) return { ...answer, body };
  const { openapi, paths } = body as {
    readonly openapi: string;
    readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
  };
  const operations = Object.entries(paths).map(([name, methods]) => [
    name,
    Object.fromEntries(Object.entries(methods).map(([method, { operationId }]) => [method, { operationId }])),
  ]);
  return { ...answer, body: { openapi, paths: Object.fromEntries(operations) as object } };
}

/** Members whose text may change: words for people, the version of the package, and tags, which only the service reads. */
const TEXTS: readonly string[] = ["detail", "title", "version", "etag", "tag", "if-none-match"];
/** Members whose number may change by less than another unit would: times that the service chooses, and versions. */
const NUMBERS: readonly string[] = ["retryAfterMs", "retry-after", "pollWithinMs", "renewAfterMs", "version", "format"];
const UNIT = 1000;

/** Returns where `now` has not what `then` has, each with its path. What `now` has beside that doesn't count. */
export function lackingIn(now: unknown, then: unknown, path: readonly string[] = []): readonly string[] {
  if (isLike(now, then))
    return Object.entries(then as object).flatMap(([name, value]) =>
      lackingIn((now as Readonly<Record<string, unknown>>)[name], value, [...path, name]),
    );
  const name = path.at(-1) ?? "";
  const areTexts = typeof now === "string" && typeof then === "string";
  if (now === then || (areTexts && TEXTS.includes(name)) || (NUMBERS.includes(name) && isNear(Number(now), Number(then)))) return [];
  return [`${path.join(".")}: ${JSON.stringify(now)} in place of ${JSON.stringify(then)}`];
}

/** True of two objects, and of two lists of one length. */
function isLike(now: unknown, then: unknown): boolean {
  if (typeof now !== "object" || typeof then !== "object" || now === null || then === null) return false;
  return Array.isArray(then) ? Array.isArray(now) && now.length === then.length : !Array.isArray(now);
}

function isNear(now: number, then: number): boolean {
  return now === 0 || then === 0 || (now > 0 && Math.abs(Math.log(now / then)) < Math.log(UNIT) / 2);
}
