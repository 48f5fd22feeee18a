/** The keys of runs over HTTP: what stands in them and in which order, which options are refused, and which requests are the same. */
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isKey, key } from "../../lib/core/key.js";
import type { KeyOptions, Target } from "../../lib/adapters/request.js";
import { isFinalStatus } from "../../lib/adapters/once.js";
import { comparedOf, contentOf, contentOfParsed, isSafe, requestKeys } from "../../lib/adapters/request.js";
import { limitRequests } from "../../lib/adapters/rate-limit.js";
import { idempotencyHandler } from "../../lib/middy.js";
import { createLockClient } from "../../lib/testing.js";
import { requestV2 } from "./events.js";
import { guide } from "../docs/snippets.js";

type Options = KeyOptions<readonly [user: string]>;

const POST: Target = { method: "POST", path: "/orders" };
const of = (user: string): string => user;

function keyOf({ user = "ann", target = POST, own = "form-1", ...options }: Partial<Options> & Partial<Request> = {}): string {
  return requestKeys<readonly [user: string]>({ service: "shop", caller: of, ...options }).ofRequest([user], target, own);
}

interface Request {
  readonly user: string;
  readonly target: Target;
  readonly own: string;
}

describe("the key of a request", () => {
  it("has the service first, then the mark, the caller, the route, and the request's own part", () => {
    expect(keyOf()).toBe("shop_~http_ann_POST_~2Forders_form-1");
    expect(keyOf({ caller: "none" })).toBe("shop_~http_POST_~2Forders_form-1");
    expect(keyOf({ target: { ...POST, method: "" } })).toBe("shop_~http_ann_-_~2Forders_form-1");
  });

  it("is the one that the page on web frameworks shows", () => {
    expect(guide("web-frameworks").text).toContain(`\`${keyOf({ service: "orders" })}\``);
  });

  it("begins as `key()` writes the service, however long the rest is, so that a permission on a prefix fits", () => {
    for (const service of ["shop", "web_shop", "s".repeat(64)]) {
      const long = keyOf({ service, own: "x".repeat(255), user: "u".repeat(255) });
      expect(long.startsWith(`${key(service)}_~http_`), long).toBe(true);
      expect(isKey(long)).toBe(true);
    }
  });

  const text = fc.oneof(
    fc.constantFrom("a", "b", "a_b", "POST", "~http", "/", "none", "http"),
    fc.string({ minLength: 1, maxLength: 300 }),
  );
  const asked = fc.record({
    service: fc.constantFrom("a", "b", "a_b", "http"),
    user: fc.option(text),
    pattern: fc.constantFrom("/a", "/:b", "/http"),
    own: text,
  });

  it("is of one service, caller, route and own part only", () => {
    const keyFor = ({ service, user, pattern, own }: { service: string; user: string | null; pattern: string; own: string }): string =>
      keyOf({ service, caller: user === null ? "none" : () => user, target: { method: "PUT", path: "/a", pattern }, own });
    fc.assert(
      fc.property(asked, asked, (one, another) => {
        expect(keyFor(one) === keyFor(another)).toBe(JSON.stringify(one) === JSON.stringify(another));
      }),
      { numRuns: 1000 },
    );
  });

  it("is none that `key()` makes of any parts", () => {
    fc.assert(fc.property(fc.array(text, { minLength: 1, maxLength: 6 }), (parts) => !key(...parts).includes("~http")));
  });

  it("control: without the mark, an application's run of such parts has it", () => {
    expect(keyOf().replace("~http_", "")).toBe(key("shop", "ann", "POST", "/orders", "form-1"));
  });
});

describe("the key of an event without a caller", () => {
  it("is the application's own, below the service", () => {
    const keys = requestKeys({ service: "shop", caller: "none" });
    expect(keys.ofEvent(key("nightly", "2027-01-01"))).toBe(key("shop", "nightly", "2027-01-01"));
    expect(() => keys.ofEvent("every night")).toThrow('key: "every night" given; a key is');
  });

  it("is not that of a request or of a limit, whoever names the event; control: key() makes another of such text", () => {
    const keys = requestKeys({ service: "shop", caller: () => "ann" });
    const request = keys.ofRequest([], POST, "form-1");
    for (const named of [request.replace("shop_", ""), "~limit_all_2:60000:2_ann"]) {
      expect(() => keys.ofEvent(named)).toThrow(expect.objectContaining({ code: "invalid-request", field: "key" }) as Error);
      expect(keys.ofEvent(key(named))).not.toBe(request);
    }
  });
});

describe("with a client that prepends a prefix to every key", () => {
  const rates = [{ count: 2, perMs: 60_000, burst: 2 }];

  it.each(["", "billing:"])("the longest header and the longest name of a caller fit: %j", async (prefix) => {
    const locks = createLockClient({ prefix });
    const handler = idempotencyHandler({ locks, service: "shop", caller: () => "ann" }, async () => ({ statusCode: 201 }));
    const event = requestV2({ headers: { "idempotency-key": "k".repeat(255) } });
    expect(await locks.clock.settle(handler(event as never, undefined))).toMatchObject({ statusCode: 201 });
    const limit = limitRequests<string>({ locks, service: "shop", name: "all", caller: of, rates });
    expect(await limit("u".repeat(255))).not.toHaveProperty("refused");
  });
});

describe("the service", () => {
  afterEach(() => vi.unstubAllEnvs());

  it("is the function's name in Lambda, unless another is given", () => {
    vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", "orders_api");
    expect(requestKeys({ caller: "none" }).ofEvent("k")).toBe("orders~5Fapi_k");
    expect(requestKeys({ service: "orders", caller: "none" }).ofEvent("k")).toBe("orders_k");
  });

  it.each([undefined, "", "web shop", "é", "a/b", "s".repeat(65), 7])("is refused by name elsewhere: %s", (service) => {
    vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", "");
    const refused = expect.objectContaining({ code: "invalid-request", field: "service" }) as Error;
    expect(() => requestKeys({ service: service as string, caller: "none" })).toThrow(refused);
  });
});

describe("a caller", () => {
  const header = Buffer.from('{"alg":"none"}').toString("base64url");
  const token = `${header}.${Buffer.from('{"sub":"ann"}').toString("base64url")}.`;

  it.each([
    ["Bearer 7f3a", "an Authorization header"],
    ["bearer 7f3a", "an Authorization header"],
    ["Basic YW5uOnNlY3JldA==", "an Authorization header"],
    ["DPoP 7f3a", "an Authorization header"],
    ["AWS4-HMAC-SHA256 Credential=A", "an Authorization header"],
    [token, "a JSON Web Token"],
    [`user:${token}signed`, "a JSON Web Token"],
    [`${header}..iv.text.tag`, "a JSON Web Token"],
  ])("that is the credential %s is refused, and the error doesn't repeat it", (user, what) => {
    expect(() => keyOf({ user })).toThrow(`caller: returned ${what} for this request; return the subject`);
    expect(() => keyOf({ user })).toThrow(expect.not.objectContaining({ message: expect.stringContaining(user) as string }) as Error);
  });

  it.each([
    "ann",
    "ann@x.org",
    "7",
    "bearer",
    "auth0|5f7c8ec7c33c6c004bbafe82",
    "arn:aws:iam::1:user/ann",
    "eyeJ.doctor.com",
    "Ann B. Bearer",
  ])("named %s is taken", (user) => {
    expect(isKey(keyOf({ user }))).toBe(true);
  });

  it.each(["", undefined, null, 7, {}])("that is %s is refused", (user) => {
    expect(() => keyOf({ user: user as string, caller: () => user as string })).toThrow("caller: returned no text for this request");
  });
});

describe("a route", () => {
  /** Returns what two requests must have in common to be the same run, and the same content. */
  const placed = (path: string, pattern?: string): unknown => [
    keyOf({ target: { method: "POST", path, pattern } }),
    comparedOf({ method: "POST", path, pattern }, {}),
  ];

  it.each([
    ["/orders", "/orders/", "/orders"],
    ["/orders", "/Orders", "/orders"],
    ["/ORDERS/aB/", "/orders/aB", "/orders/:id"],
    ["/shop/orders/7", "/shop/Orders/7/", "/orders/{id}"],
  ])("%s is the same as %s, by its pattern %s", (one, another, pattern) => {
    expect(placed(one, pattern)).toEqual(placed(another, pattern));
  });

  it.each([
    ["a parameter in another case", "/orders/aB", "/orders/ab", "/orders/:id"],
    ["another parameter", "/orders/1", "/orders/2", "/orders/:id"],
    ["another mount", "/a/orders", "/b/orders", "/orders"],
    ["a path that its wildcard leaves open", "/files/a", "/files/A", "/files/*"],
    ["a greedy parameter", "/orders", "/refunds", "/{proxy+}"],
    ["a path that nobody told the pattern of", "/orders", "/Orders", undefined],
    ["a parameter that is spelled as its name", "/orders/:id", "/orders/:ID", "/orders/:id"],
  ])("is not the same with %s: %s and %s", (_what, one, another, pattern) => {
    expect(placed(one, pattern)).not.toEqual(placed(another, pattern));
  });

  it.each([
    ["/orders", "/Orders/"],
    ["/files/a", "/FILES/a"],
  ])("without a pattern has one key for %s and %s, so that the second is refused and not run", (one, another) => {
    const keyAt = (path: string): string => keyOf({ target: { method: "POST", path } });
    expect(keyAt(one)).toBe(keyAt(another));
  });

  it.each(["/*", "/*all", "/:all{.*}", "/{proxy+}", ""])("that may be any (%s) is told by the path", (pattern) => {
    const keyAt = (path: string): string => keyOf({ target: { method: "POST", path, pattern } });
    expect(keyAt("/orders")).toBe(keyOf());
    expect(keyAt("/refunds")).not.toBe(keyAt("/orders"));
  });

  it("is the root of an empty path", () => {
    for (const path of ["", "/"]) expect(keyOf({ target: { method: "POST", path } })).toBe("shop_~http_ann_POST_~2F_form-1");
  });
});

it("only GET, HEAD and OPTIONS are safe", () => {
  expect(["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", ""].filter(isSafe)).toEqual(["GET", "HEAD", "OPTIONS"]);
});

describe("the content of a body", () => {
  const latin1 = (text: string): Uint8Array => Buffer.from(text, "latin1");

  it.each<[what: string, one: string | Uint8Array, another: string | Uint8Array]>([
    ["an integer beyond 2^53", '{"order": 9007199254740992}', '{"order": 9007199254740993}'],
    ["a negative one", '{"order": [-9007199254740993]}', '{"order": [-9007199254740992]}'],
    ["a fraction beyond a double's digits", '{"cents": 0.1}', '{"cents": 0.10000000000000000001}'],
    ["an exponent beyond a double's", '{"cents": 1e400}', '{"cents": 2e400}'],
    ["a text and a JSON text", "abc", '"abc"'],
    ["how a lone number is written", "1.0", "1"],
    ["bytes and their base64", Uint8Array.from([0xff, 0xfe]), "//4="],
    ["a byte order mark", '{"order":1}', '\uFEFF{"order":1}'],
    ["a byte order mark in bytes", Buffer.from('{"order":1}'), Buffer.from('\uFEFF{"order":1}')],
    ["spaces of what is too large to be parsed", `[${"1,".repeat(40_000)}1]`, `[${"1,".repeat(40_000)} 1]`],
    ["bytes that are no UTF-8", latin1('{"city":"K\u00f6ln"}'), latin1('{"city":"K\u00e4ln"}')],
  ])("differs in %s", (_what, one, another) => {
    expect(contentOf(one)).not.toEqual(contentOf(another));
    expect(contentOf(one)).toEqual(contentOf(one.slice()));
  });

  it("is text where the type says so, whatever the text is; a parser's text is the JSON that the type says", () => {
    expect(contentOf('{"a":1}', "text/plain;charset=UTF-8")).toEqual({ text: '{"a":1}' });
    for (const type of ["application/json", "application/JSON; charset=utf-8", "application/merge-patch+json", undefined])
      expect(contentOf('{"a":1}', type)).toEqual({ json: { a: 1 } });
    expect(contentOfParsed("abc", "application/json")).toEqual({ json: "abc" });
    expect(contentOfParsed("abc", "text/plain")).toEqual({ text: "abc" });
    expect(contentOfParsed(undefined, "application/json")).toBeUndefined();
  });

  it.each<[one: string, another: string | Uint8Array]>([
    ['{"a":0.30000000000000004,"b":9007199254740991}', '{ "b": 9007199254740991, "a": 0.30000000000000004 }'],
    ['{"a":1e21,"b":1e-7,"c":-0.5}', '{"b":0.0000001,"a":1E+21,"c":-5e-1}'],
    ['{"a":"9007199254740993 \\" 1e400","b":1.50}', '{"b":1.5,"a":"9007199254740993 \\" 1e400"}'],
    ['{"city":"Köln"}', Buffer.from('{"city":"Köln"}')],
  ])("is the same as long as its numbers are, however they are written: %s", (one, another) => {
    expect(contentOf(one)).toEqual(contentOf(another));
  });
});

it.each<[statuses: readonly number[], isFinal: boolean]>([
  [[200, 201, 204, 302, 400, 402, 404, 410, 412, 422], true],
  [[401, 403, 408, 409, 423, 425, 429, 500, 502, 503, 504], false],
])("responses of status %j are results of the work: %s", (statuses, isFinal) => {
  expect(statuses.filter((status) => isFinalStatus(status) !== isFinal)).toEqual([]);
});
