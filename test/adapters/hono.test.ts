/** The rules of Hono alone: bodies, which the adapter reads before the route, streams that say nothing of being one, and middlewares. */
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { Hono } from "hono";
import { stream } from "hono/streaming";
import { describe, expect, it } from "vitest";
import { idempotent as ofHono } from "../../lib/hono.js";
import { createLockClient as inMemory } from "../../lib/testing.js";
import { createGate } from "../support/run-gate.js";
import { ASKED, replayed } from "./app-server.js";

const MB = 1024 * 1024;
const ofAll = () => ({ locks: inMemory(), service: "shop", caller: "none" }) as const;

describe("Hono", () => {
  it("fails if the route returns nothing, as it does without a key, and records nothing", async () => {
    let calls = 0;
    const app = new Hono();
    const nothing = (() => void calls++) as unknown as () => Response;
    app.post("/", ofHono(ofAll()), nothing).onError((_error, c) => c.text("broken", 500));
    const answers = [await app.request("/", ASKED), await app.request("/", ASKED)];
    expect([answers.map(({ status }) => status), answers.map(replayed), calls]).toEqual([[500, 500], [null, null], 2]);
  });

  it.each<[what: string, headers: Readonly<Record<string, string>>]>([
    ["that tells its length", { "content-length": String(100 * MB) }],
    ["that tells no length", {}],
  ])("reads no more than it may of a body %s, and answers 413", async (_what, headers) => {
    let calls = 0;
    let chunks = 0;
    const app = new Hono();
    app.post("/", ofHono({ ...ofAll(), maxBodyBytes: 2 * MB }), (c) => c.text(String(++calls)));
    const body = new ReadableStream({
      pull: (controller) => (chunks++ < 100 ? controller.enqueue(new Uint8Array(MB)) : controller.close()),
    });
    const refused = await app.request("/", { ...ASKED, headers: { ...ASKED.headers, ...headers }, body, duplex: "half" } as RequestInit);
    expect([refused.status, calls, ((await refused.json()) as { code: string }).code]).toEqual([413, 0, "too-large"]);
    expect(chunks).toBeLessThan(6);
    expect((await app.request("/", { ...ASKED, body: new Uint8Array(2 * MB) })).status).toBe(200);
  });

  it("sends a stream that says nothing of being one as it comes, and doesn't repeat its work", async () => {
    const [freed, app] = [createGate(), new Hono()];
    app.post("/", ofHono({ ...ofAll(), waitMs: 0 }), (c) =>
      stream(c, async (out) => {
        await out.write("one ");
        await freed.opened;
        await out.write("two");
      }),
    );
    const first = await app.request("/", ASKED);
    const reader = first.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe("one ");
    expect((await app.request("/", ASKED)).status).toBe(409); // still in progress
    freed.open();
    expect((await reader.read()).value).toBe("two");
    expect((await reader.read()).done).toBe(true);
    await expect.poll(async () => ((await (await app.request("/", ASKED)).json()) as { code: string }).code).toBe("result-omitted");
  });

  it("leaves the body to the route, whatever form it has and whoever read it before", async () => {
    const app = new Hono();
    app.use("/read/*", async (c, next) => {
      await c.req.text();
      await next();
    });
    const once = ofHono(ofAll());
    app.post("/form", once, async (c) => c.json(await c.req.parseBody()));
    app.post("/read/json", once, async (c) => c.json(await c.req.json()));
    const form = new FormData();
    form.set("product", "camera");
    expect(await (await app.request("/form", { ...ASKED, body: form })).json()).toEqual({ product: "camera" });
    const sent = { ...ASKED, headers: { ...ASKED.headers, "content-type": "application/json" } };
    const json = { ...sent, body: '{"product":"camera"}' };
    expect(await (await app.request("/read/json", json)).json()).toEqual({ product: "camera" });
    expect(replayed(await app.request("/read/json", json))).toBe("true");
    // Spaces make no difference, a number that JavaScript can't represent does.
    expect(replayed(await app.request("/read/json", { ...sent, body: '{ "product": "camera" }' }))).toBe("true");
    expect((await app.request("/read/json", { ...sent, body: '{"product":"lens"}' })).status).toBe(422);
  });
});

describe("Hono, with other middlewares", () => {
  it.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
  ] as const)("records a response that the route compresses (%s), and replays it uncompressed", async (encoding, compress) => {
    const app = new Hono();
    app.post("/", ofHono(ofAll()), (c) => c.body(new Uint8Array(compress("made")), 201, { "content-encoding": encoding }));
    const first = await app.request("/", ASKED);
    expect([first.status, first.headers.get("content-encoding"), replayed(first)]).toEqual([201, encoding, null]);
    const again = await app.request("/", ASKED);
    expect([again.status, again.headers.get("content-encoding"), replayed(again), await again.text()]).toEqual([201, null, "true", "made"]);
  });

  it("serves a request once where it is mounted twice", async () => {
    const options = ofAll();
    let calls = 0;
    const app = new Hono().use("*", ofHono(options));
    app.post("/", ofHono(options), (c) => c.text(String(++calls)));
    const answers = [await app.request("/", ASKED), await app.request("/", ASKED)];
    expect([answers.map(({ status }) => status), answers.map(replayed), calls]).toEqual([[200, 200], [null, "true"], 1]);
  });

  it("takes a body with a byte order mark, and a text, for others than the JSON", async () => {
    const app = new Hono().post("/", ofHono(ofAll()), (c) => c.text("made"));
    const post = async (body: string, type = "application/json") =>
      (await app.request("/", { ...ASKED, headers: { ...ASKED.headers, "content-type": type }, body })).status;
    expect(await post('{"id":1}')).toBe(200);
    for (const [body, type] of [['\uFEFF{"id":1}'], ['{"id":1}', "text/plain"]] as const) expect(await post(body, type)).toBe(422);
    expect(await post('{ "id": 1 }')).toBe(200);
  });
});

describe("Hono, before routes", () => {
  it("tells routes apart", async () => {
    const calls: string[] = [];
    const app = new Hono().use("*", ofHono(ofAll()));
    for (const path of ["/orders", "/refunds"]) app.post(path, (c) => c.text(String(calls.push(path))));
    for (const path of ["/orders", "/refunds", "/orders"]) expect((await app.request(path, ASKED)).status).toBe(200);
    expect(calls).toEqual(["/orders", "/refunds"]);
  });
});
