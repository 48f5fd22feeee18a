/** Values that callers store, over HTTP: results, errors, checkpoints and meta come back as they were sent, up to their bounds. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import { told } from "../e2e/calls.js";
import { type HttpService, serve } from "../support/http-service.js";
import { localCalls } from "./local-calls.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { freshKey, newId, get, start, begin, complete } = localCalls(() => service, "PAID");
const look = (key: string) => get(`/v1/runs/${key}`);

/** Text whose JSON has exactly that many bytes. */
function textOf(bytes: number, character = "x"): string {
  const each = Buffer.byteLength(character);
  return character.repeat(Math.floor((bytes - 2) / each)) + "x".repeat((bytes - 2) % each);
}
const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const checkpointed = (url: string, json: string) => service.send("POST", `${url}/renew`, { body: `{"checkpoint":${json}}` });

describe("a value of a run", () => {
  it.each(["null", "false", "0", '""', "[]", "{}", "-1.5e-7", '"Zoë \\ud83d"', '{"":1,"__proto__":{"a":[]},"constructor":2,"10":3}'])(
    "%s is told as it was sent: as a result, as an error and as a checkpoint",
    async (json) => {
      const sent = JSON.stringify(JSON.parse(json));
      const { key, url } = await begin();
      await checkpointed(url, json);
      for (const { body } of [await service.send("PUT", url), await look(key)]) expect(JSON.stringify(body.checkpoint)).toBe(sent);
      await complete({ url }, `{"state":"succeeded","result":${json}}`);
      for (const { body } of [await start(key), await look(key)]) expect(JSON.stringify(body.result)).toBe(sent);
      const failed = await begin();
      await complete(failed, `{"state":"failed","retryable":false,"error":${json}}`);
      for (const { body } of [await start(failed.key), await look(failed.key)]) expect(JSON.stringify(body.error)).toBe(sent);
    },
  );

  it.each<[what: string, outcome: object]>([
    ["absent is absent, which null is not", { state: "succeeded" }],
    ["omitted says so", { state: "succeeded", resultOmitted: true }],
  ])("that is %s", async (_what, outcome) => {
    const run = await begin();
    await complete(run, outcome);
    expect((await start(run.key)).body).toEqual({ ...outcome, attempt: 1 });
  });

  it.each([
    [LIMITS.inlineBytes, "x"],
    [LIMITS.inlineBytes + 1, "x"],
    [LIMITS.resultBytes, "x"],
    [LIMITS.resultBytes, "é"],
    [LIMITS.resultBytes, "😀"],
  ])("of exactly %i bytes of %s is kept, and told to everybody who asks", async (bytes, character) => {
    const result = textOf(bytes, character);
    const { key, url } = await begin();
    const outcome = { state: "succeeded", result };
    expect((await complete({ url }, outcome)).status).toBe(200);
    expect((await complete({ url }, outcome)).headers["idempotent-replayed"]).toBe("true");
    for (const { body } of [await start(key, {}, { as: "bob" }), await look(key), await service.send("PUT", url)])
      expect(body.result === result, "the same text").toBe(true);
    const other = { ...outcome, result: result.replace(character, "y".repeat(Buffer.byteLength(character))) };
    expect(told(await complete({ url }, other))).toEqual([409, "outcome-differs"]);
  });

  it.each<[field: string, outcome: object]>([
    ["result", { state: "succeeded", result: textOf(LIMITS.resultBytes + 1) }],
    ["result", { state: "succeeded", result: textOf(LIMITS.resultBytes + 1, "é") }],
    ["error", { state: "failed", error: textOf(LIMITS.resultBytes + 1), retryable: false }],
  ])("of one byte more is 413, naming %s; nothing is recorded, and a smaller one may follow", async (field, outcome) => {
    const { key, url } = await begin();
    const { body } = await complete({ url }, outcome);
    expect(body).toMatchObject({ status: 413, code: "too-large", field, definite: true, retry: "never" });
    expect((await look(key)).body.state).toBe("running");
    expect((await complete({ url }, { state: "succeeded", resultOmitted: true })).status).toBe(200);
  });

  it("nested a hundred deep is kept; deeper is 400, naming the field, and not recorded", async () => {
    const { key, url } = await begin();
    for (const levels of [101, 100_000]) {
      const refused = await complete({ url }, `{"state":"succeeded","result":${nested(levels)}}`);
      expect([...told(refused), refused.body.field]).toEqual([400, "invalid-request", "result"]);
    }
    const refused = await checkpointed(url, nested(101));
    expect([...told(refused), refused.body.field]).toEqual([400, "invalid-request", "checkpoint"]);
    expect((await complete({ url }, `{"state":"succeeded","result":${nested(100)}}`)).status).toBe(200);
    expect(JSON.stringify((await start(key)).body.result)).toBe(nested(100));
  });
});

describe("a checkpoint", () => {
  it("is told up to its bound; a byte more is 413, and changes neither checkpoint nor lease", async () => {
    const { url } = await begin();
    const largest = JSON.stringify(textOf(LIMITS.checkpointBytes));
    expect((await checkpointed(url, largest)).status).toBe(200);
    await service.clock.advance(1_000);
    for (const [text, field] of [
      [textOf(LIMITS.checkpointBytes + 1), "checkpoint"],
      [textOf(LIMITS.checkpointBytes + 1, "é"), "checkpoint"],
      [textOf(LIMITS.bodyBytes), undefined],
    ] as const) {
      const refused = await checkpointed(url, JSON.stringify(text));
      expect([...told(refused), refused.body.field]).toEqual([413, "too-large", field]);
    }
    const { body } = await service.send("PUT", url);
    expect([JSON.stringify(body.checkpoint) === largest, body.remainingMs]).toEqual([true, 29_000]);
  });
});

describe("meta", () => {
  it.each([
    ["what JSON can say and a table can't", '{"n":1e400,"big":1e300,"tiny":1e-300,"exact":12345678901234567890}'],
    ["as many levels as its size allows", `{"a":${nested(505)}}`],
    ["odd names", '{"":1,"__proto__":{"a":1},"constructor":2,"\\ud83d":"\\ud83d","\\u0000":""}'],
  ])("with %s is taken as it is, and brought back", async (_what, json) => {
    const [url, body] = [`/v1/locks/${freshKey()}/leases/${newId()}`, `{"meta":${json}}`];
    const sent = JSON.stringify(JSON.parse(json));
    const replies = [
      await service.send("PUT", url, { body }),
      await service.send("PUT", url, { body }),
      await service.send("GET", url),
      await service.send("POST", `${url}/renew`, { body }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([201, 200, 200, 200]);
    for (const reply of replies) expect(JSON.stringify(reply.body.meta)).toBe(sent);
  });
});
