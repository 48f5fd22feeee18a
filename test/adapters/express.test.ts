/** The rules of Express alone: bodies that parsers leave, responses that its routes send by hand, and routers. */
import type { ServerResponse } from "node:http";
import { createRequire } from "node:module";
import express from "express";
import { describe, expect, it } from "vitest";
import { idempotent as ofExpress } from "../../lib/express.js";
import { createLockClient as inMemory } from "../../lib/testing.js";
import { ASKED, closingAfterEach, listening, replayed } from "./app-server.js";

/** Nest's parser of forms with files, which comes without types. */
const multer = createRequire(import.meta.url)("multer") as {
  (options: { readonly storage: unknown }): { single(field: string): express.RequestHandler };
  memoryStorage(): unknown;
};
type Uploaded = express.Request & { readonly file: { readonly buffer: Buffer } };

const open = closingAfterEach();
const ofAll = () => ({ locks: inMemory(), service: "shop", caller: "none" }) as const;

describe("Express", () => {
  it("refuses a body that no parser took with 415, because all bodies would be equal; with a fingerprint it serves it", async () => {
    let calls = 0;
    const route = (_req: unknown, res: express.Response): void => void res.send(`made ${++calls}`);
    const app = express().use(express.json());
    app.post("/unparsed", ofExpress(ofAll()), route);
    app.post("/chosen", ofExpress({ ...ofAll(), fingerprint: () => "form" }), route);
    const server = open(await listening(app));
    const post = (path: string) => fetch(server.url + path, { ...ASKED, body: "text" });
    const refused = await post("/unparsed");
    expect([refused.status, calls, await refused.json()]).toMatchObject([
      ...[415, 0, { code: "unsupported-media-type", detail: expect.stringMatching(/^body: no parser took text\/plain/), retry: "never" }],
    ]);
    expect([await post("/chosen"), await post("/chosen")].map(replayed)).toEqual([null, "true"]);
  });

  it("refuses a form with files, of which a parser leaves the fields alone; with a fingerprint that covers them it tells them apart", async () => {
    const upload = multer({ storage: multer.memoryStorage() }).single("photo");
    const route = (req: express.Request, res: express.Response): void => void res.send((req as Uploaded).file.buffer.toString());
    const app = express();
    app.post("/fields", upload, ofExpress(ofAll()), route);
    const fingerprint = (req: express.Request): unknown => [req.body, (req as Uploaded).file.buffer.toString("base64")];
    app.post("/whole", upload, ofExpress({ ...ofAll(), fingerprint }), route);
    const server = open(await listening(app));
    const post = (path: string, photo: string) => {
      const form = new FormData();
      form.set("title", "mine");
      form.set("photo", new Blob([photo]), "photo.jpg");
      return fetch(server.url + path, { ...ASKED, body: form });
    };
    expect((await post("/fields", "one")).status).toBe(415);
    expect(await (await post("/whole", "one")).text()).toBe("one");
    expect(replayed(await post("/whole", "one"))).toBe("true");
    expect((await post("/whole", "two")).status).toBe(422);
  });

  it.each([
    ["application/json", '"abc"', "text/plain", "abc"],
    ["text/plain", "1.0", "text/plain", "1"],
    ["image/png", Uint8Array.from([0xff, 0xfe]), "text/plain", "//4="],
  ])("takes a body of %s for another than %s with the same content", async (type, body, otherType, other) => {
    const app = express().use(express.json({ strict: false }), express.text(), express.raw({ type: "image/*" }));
    app.post("/", ofExpress(ofAll()), (_req, res) => void res.send("made"));
    const server = open(await listening(app));
    const post = (as: string, sent: string | Uint8Array<ArrayBuffer>) =>
      fetch(server.url, { ...ASKED, headers: { ...ASKED.headers, "content-type": as }, body: sent });
    expect([(await post(type, body)).status, (await post(otherType, other)).status]).toEqual([200, 422]);
    expect(replayed(await post(type, body))).toBe("true");
  });

  it("serves a request once where it is mounted twice", async () => {
    const options = ofAll();
    const app = express().use(ofExpress(options));
    let calls = 0;
    app.post("/", ofExpress(options), (_req, res) => void res.send(String(++calls)));
    const server = open(await listening(app));
    const answers = [await fetch(server.url, ASKED), await fetch(server.url, ASKED)];
    expect([answers.map(({ status }) => status), answers.map(replayed), calls]).toEqual([[200, 200], [null, "true"], 1]);
  });

  it.each<[what: string, send: (res: ServerResponse) => void]>([
    ["held", (res) => void res.end("made")],
    ["streamed", (res) => (res.write("ma"), res.end("de"))],
  ])("sends the headers that a middleware of the route sets at the last moment, of a response that is %s", async (_what, send) => {
    // As \`on-headers\` does it, for response-time and sessions.
    const atLast = (res: ServerResponse): void => {
      const writeHead = res.writeHead.bind(res);
      res.writeHead = ((...args: Parameters<typeof writeHead>) => {
        res.setHeader("etag", '"1"');
        return writeHead(...args);
      }) as never;
    };
    const serve = ofExpress(ofAll());
    const server = open(
      await listening((req, res) =>
        serve(req, res, () => {
          atLast(res);
          send(res);
        }),
      ),
    );
    const first = await fetch(server.url, ASKED);
    expect([await first.text(), first.headers.get("etag")]).toEqual(["made", '"1"']);
  });

  it("refuses compression after it by name, and leaves one before it alone", async () => {
    // As compression() begins: it adds a method, then replaces write and end.
    const compression: express.RequestHandler = (_req, res, next) => {
      Object.assign(res, { flush: () => "flushed" });
      next();
    };
    const app = express();
    const route: express.RequestHandler = (_req, res) => void res.send((res as unknown as { flush(): string }).flush());
    app.post("/before", compression, ofExpress(ofAll()), route);
    app.post("/after", ofExpress(ofAll()), compression, route);
    app.use(((error: Error, _req, res, _next) => void res.status(500).send(error.message)) as express.ErrorRequestHandler);
    const server = open(await listening(app));
    const text = async (path: string) => (await fetch(server.url + path, ASKED)).text();
    expect(await text("/before")).toBe("flushed");
    expect(await text("/after")).toBe("compression: use it before idempotent, not after it");
  });

  it("answers in place of a response that is held when isRecorded throws", async () => {
    const isRecorded = (): boolean => {
      throw new Error("a mistake of the application");
    };
    const serve = ofExpress({ ...ofAll(), isRecorded });
    const server = open(await listening((req, res) => serve(req, res, () => res.writeHead(201).end("made"))));
    const refused = await fetch(server.url, ASKED);
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: "not-recorded" }]);
  });

  it.each<[what: string, route: (res: ServerResponse) => void, kept: boolean]>([
    ["writes a body of known length", (res) => (res.writeHead(201, "Made", { "content-length": 4 }), res.write("ma"), res.end("de")), true],
    ["gives its headers as a list", (res) => (res.writeHead(201, ["location", "/1", "etag", '"1"']), res.end("made")), true],
    ["gives its headers as pairs", (res) => void res.writeHead(201, [["location", "/1"]] as never).end(Buffer.from("made")), true],
    ["ends in another encoding", (res) => void res.writeHead(201).end("6d616465", "hex"), true],
    ["ends twice", (res) => (res.writeHead(201).end("made"), (res.statusCode = 500), res.writeHead(500).end("again")), true],
    ["writes a body of unknown length", (res) => (res.writeHead(201), res.write("ma"), res.end("de")), false],
    ["sends its headers first", (res) => (res.writeHead(201), res.flushHeaders(), res.end("made")), false],
    ["is encoded", (res) => void res.writeHead(201, { "content-encoding": "identity" }).end("made"), false],
  ])("sends the response of a route that %s as it is, and replays it if it was held", async (_what, route, isKept) => {
    const serve = ofExpress(ofAll());
    const server = open(await listening((req, res) => serve(req, res, () => route(res))));
    const first = await fetch(server.url, ASKED);
    expect([first.status, await first.text()]).toEqual([201, "made"]);
    const again = await fetch(server.url, ASKED);
    expect([again.status, replayed(again)]).toEqual(isKept ? [201, "true"] : [409, null]);
    if (isKept) expect([await again.text(), again.headers.get("location")]).toEqual(["made", first.headers.get("location")]);
  });
});

it("sends a header that a route gives twice as often", async () => {
  const serve = ofExpress(ofAll());
  const given = ["link", "</1>", "Link", "</2>"];
  const server = open(await listening((req, res) => serve(req, res, () => res.writeHead(201, given).end("made"))));
  for (const answer of [await fetch(server.url, ASKED), await fetch(server.url, ASKED)])
    expect(answer.headers.get("link")?.replaceAll(" ", "")).toBe("</1>,</2>");
});

describe("Express, in routers and before routes", () => {
  /** An application whose routes tell how often they ran. */
  async function served(build: (app: express.Express, route: express.RequestHandler, once: express.RequestHandler) => void) {
    const calls: string[] = [];
    const app = express();
    build(app, (req, res) => void res.send(String(calls.push(req.originalUrl))), ofExpress(ofAll()));
    const server = open(await listening(app));
    return { calls, post: async (path: string) => (await fetch(server.url + path, ASKED)).status };
  }

  it("knows a route of a mounted router, however its request spells the end of the path", async () => {
    const { calls, post } = await served((app, route, once) => {
      app.use("/shops/:shop", express.Router().post("/orders", once, route).post("/", once, route));
    });
    for (const path of ["/shops/7/orders", "/shops/7/Orders/", "/shops/7", "/shops/7/"]) expect(await post(path)).toBe(200);
    expect(calls).toEqual(["/shops/7/orders", "/shops/7"]);
    expect(await post("/shops/8/orders")).toBe(200);
  });

  it("refuses a mount in another case, which may be a parameter", async () => {
    const { calls, post } = await served((app, route, once) => void app.use("/orders", express.Router().post("/", once, route)));
    expect([await post("/orders"), await post("/Orders")]).toEqual([200, 422]);
    expect(calls).toHaveLength(1);
  });

  it("tells routes apart before one is chosen, also after another route that took the request", async () => {
    const { calls, post } = await served((app, route, once) => {
      app.all("/*all", (_req, _res, next) => next());
      app.use(once).post("/orders", route).post("/refunds", route);
    });
    expect([await post("/orders"), await post("/refunds"), await post("/orders"), await post("/Orders")]).toEqual([200, 200, 200, 422]);
    expect(calls).toEqual(["/orders", "/refunds"]);
  });
});
