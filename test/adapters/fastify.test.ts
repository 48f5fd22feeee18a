/** The rules of Fastify alone: what hooks make of a response, and the ways in which a handler sends its reply. */
import { Readable } from "node:stream";
import { createBrotliCompress, createDeflate, createGzip } from "node:zlib";
import fastify from "fastify";
import { describe, expect, it } from "vitest";
import { idempotent as ofFastify } from "../../lib/fastify.js";
import { createLockClient as inMemory } from "../../lib/testing.js";
import { createGate } from "../support/run-gate.js";
import { ASKED, closingAfterEach, replayed } from "./app-server.js";

const open = closingAfterEach();
const ofAll = () => ({ locks: inMemory(), service: "shop", caller: "none" }) as const;

describe("Fastify", () => {
  /** An application whose hooks change each response, and its answers to one request and the same again. */
  async function twice(change: (app: fastify.FastifyInstance) => void, made: unknown, headers: Readonly<Record<string, string>> = {}) {
    const app = fastify();
    let calls = 0;
    change(app);
    app.post(
      "/orders",
      ofFastify(ofAll(), async (_request, reply: fastify.FastifyReply) => {
        calls++;
        return reply.header("etag", '"1"').send(made);
      }),
    );
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    open({ close: () => app.close() });
    const ask = async () => {
      const answer = await fetch(`${url}/orders`, { ...ASKED, headers: { ...ASKED.headers, ...headers } });
      // The next request comes after the end of this one: it would wait for a stream, on a clock that nobody turns.
      return { answer, text: await answer.text() };
    };
    const both = [await ask(), await ask()];
    return { answers: both.map(({ answer }) => answer), texts: both.map(({ text }) => text), calls };
  }

  it("replays the body as hooks changed it, and no change is made twice; headers that hooks set are on each answer", async () => {
    let hooks = 0;
    const { answers, texts, calls } = await twice(
      (app) => {
        app.addHook("onSend", async (_request, reply, payload) => {
          reply.header("x-hook", String(++hooks));
          return `{"data":${String(payload)}}`;
        });
      },
      { id: 1 },
    );
    expect(texts).toEqual(Array(2).fill('{"data":{"id":1}}'));
    expect(answers.map(({ headers }) => [headers.get("x-hook"), headers.get("etag"), headers.get("content-length")])).toEqual([
      ["1", '"1"', "17"],
      ["2", '"1"', "17"],
    ]);
    expect([answers.map(replayed), calls]).toEqual([[null, "true"], 1]);
  });

  /** Compresses each payload as @fastify/compress does: the compressed one is a stream. */
  const compresses =
    (encoding: "gzip" | "br" | "deflate") =>
    (app: fastify.FastifyInstance): void => {
      const compressor = { gzip: createGzip, br: createBrotliCompress, deflate: createDeflate }[encoding];
      app.addHook("onSend", async (_request, reply, payload) => {
        reply.header("content-encoding", encoding).header("vary", "accept-encoding").removeHeader("content-length");
        const whole = typeof payload === "string" || Buffer.isBuffer(payload) ? Readable.from([payload]) : (payload as Readable);
        return whole.pipe(compressor());
      });
    };

  it.each(["gzip", "br", "deflate"] as const)(
    "records a response that a hook compresses (%s), and replays it uncompressed",
    async (encoding) => {
      const made = { id: 1, text: "x".repeat(50_000) };
      const { answers, texts, calls } = await twice(compresses(encoding), made);
      expect(texts).toEqual(Array(2).fill(JSON.stringify(made)));
      expect(answers.map(({ headers }) => headers.get("content-encoding"))).toEqual([encoding, null]);
      expect([answers.map(replayed), calls]).toEqual([[null, "true"], 1]);
    },
  );

  it("passes a stream that a hook compresses through, and one that would be too large uncompressed", async () => {
    for (const made of [Readable.from(["one ", "two"]), "x".repeat(300 * 1024)]) {
      const { answers, texts, calls } = await twice(compresses("gzip"), made);
      expect([texts[0], answers[1]!.status, calls]).toEqual([typeof made === "string" ? made : "one two", 409, 1]);
    }
  });

  it("runs nothing beside work that goes on after a timer answered 504; control: without the promise it does", async () => {
    const mostAtOnce = async (isAwaited: boolean): Promise<readonly number[]> => {
      const app = fastify();
      const [freed, began] = [createGate(), [] as number[]];
      let [inside, most] = [0, 0];
      const work = async (): Promise<void> => {
        began.push(1);
        most = Math.max(most, ++inside);
        await freed.opened;
        inside--;
      };
      app.post(
        "/pay",
        ofFastify({ ...ofAll(), waitMs: 0 }, (_request, reply: fastify.FastifyReply) => {
          const working = work();
          if (began.length < 3) setTimeout(() => void reply.code(504).send("late"), 1);
          return isAwaited ? working.then(() => (reply.sent ? reply : "paid")) : undefined;
        }),
      );
      const url = await app.listen({ port: 0, host: "127.0.0.1" });
      open({ close: () => app.close() });
      const first = await fetch(`${url}/pay`, ASKED);
      const retry = await fetch(`${url}/pay`, ASKED);
      freed.open();
      return [first.status, retry.status, most];
    };
    expect(await mostAtOnce(true)).toEqual([504, 409, 1]);
    expect(await mostAtOnce(false)).toEqual([504, 504, 2]);
  });

  it("serves a request once where it is wrapped twice", async () => {
    const options = ofAll();
    const app = fastify();
    let calls = 0;
    app.post(
      "/",
      ofFastify(
        options,
        ofFastify(options, async () => String(++calls)),
      ),
    );
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    open({ close: () => app.close() });
    const answers = [await fetch(url, ASKED), await fetch(url, ASKED)];
    expect([answers.map(({ status }) => status), answers.map(replayed), calls]).toEqual([[200, 200], [null, "true"], 1]);
  });

  it("replays the response of a handler that sends its reply later, by either of its ways", async () => {
    const app = fastify();
    const locks = inMemory();
    const options = { locks, service: "shop", caller: "none" } as const;
    app.post(
      "/later",
      ofFastify(options, (_request, reply) => void setTimeout(() => void reply.code(201).send("made"), 1)),
    );
    app.post(
      "/awaited",
      ofFastify(options, async (_request, reply) => {
        setTimeout(() => void reply.code(201).send("made"), 1);
        return reply;
      }),
    );
    app.post(
      "/sent",
      ofFastify(options, async (_request, reply) => void reply.code(201).send("made")),
    );
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    for (const path of ["/later", "/awaited", "/sent"]) {
      for (const isAgain of [null, "true"]) {
        const response = await fetch(url + path, ASKED);
        expect([path, response.status, replayed(response), await response.text()]).toEqual([path, 201, isAgain, "made"]);
      }
    }
    await app.close();
  });
});
