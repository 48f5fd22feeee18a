/** Work under an idempotency key over HTTP: started once, its outcome stored, and replayed to all other callers. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

const MINUTE_MS = 60_000;
const UNDER_WAY_MS = 300;
const SUCCESS = { state: "succeeded", result: { refund: "re_1", cents: 4200, text: "é" } };

/** Starts and their answers. */
export function starts({ it }: Suite, { fixture, start, begin, complete }: Calls): void {
  it("is 201 for who runs it: a first attempt, no takeover, and a lease; again 200", async () => {
    const body = { leaseMs: 20_000, owner: "worker", fingerprint: "4200" };
    const run = await begin(undefined, body);
    expect(run.body).toMatchObject({ state: "running", attempt: 1, takeover: false, key: run.key, leaseId: run.leaseId, leaseMs: 20_000 });
    expect(Number.isSafeInteger(run.body.fencingToken)).toBe(true);
    expect(run.headers["etag"]).toBe(`"v${run.body.version}"`);
    const again = await start(run.key, body, run);
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(again.body).toMatchObject({ state: "running", attempt: 1, fencingToken: run.body.fencingToken });
  });

  it("is told the other's result while it waits for it, or else at once that the other still runs, and the result when it asks again", async () => {
    const run = await begin();
    const waiting = start(run.key, {}, { prefer: "wait=4" });
    await sleep(UNDER_WAY_MS);
    await complete(run, SUCCESS);
    const held = await fixture().passing(waiting);
    // A deployment may be configured without waits.
    if (held.status !== 200) expect(told(held)).toEqual([409, "run-in-progress"]);
    const answered = held.status === 200 ? held : await start(run.key);
    expect([answered.status, answered.headers["idempotent-replayed"], answered.body.result]).toEqual([200, "true", SUCCESS.result]);
    const other = await begin();
    expect(told(await fixture().passing(start(other.key, {}, { prefer: "wait=1" })))).toEqual([409, "run-in-progress"]);
  });
}

/** Outcomes: recorded once, by the holder of the run. */
export function outcomes({ it }: Suite, { get, start, begin, complete, release }: Calls): void {
  it("of a success is recorded, again the same, and replayed to every later start", async () => {
    const run = await begin();
    const [first, again] = [await complete(run, SUCCESS), await complete(run, SUCCESS)];
    expect([first.status, first.headers["idempotent-replayed"]]).toEqual([200, undefined]);
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    for (const parts of [{}, { leaseId: run.leaseId }]) {
      const replayed = await start(run.key, {}, parts);
      expect([replayed.status, replayed.headers["idempotent-replayed"]]).toEqual([200, "true"]);
      expect(replayed.body).toMatchObject({ ...SUCCESS, attempt: 1 });
    }
    expect((await get(run.url)).status).toBe(410);
    expect(await release(run)).toBe("released");
  });

  it("may be 256 KB, and over that is 413; of another form it is 400, naming the field", async () => {
    const run = await begin();
    const large = { state: "succeeded", result: "x".repeat(256 * 1024) };
    const refused = await complete(run, large);
    expect([...told(refused), refused.body.definite]).toEqual([413, "too-large", true]);
    for (const [outcome, field] of [
      [{ state: "done" }, "state"],
      [{ state: "failed", error: "x" }, "retryable"],
      [{ state: "succeeded", result: 1, error: "x" }, "error"],
    ] as const) {
      const { status, body } = await complete(run, outcome);
      expect([status, body.code, body.field]).toEqual([400, "invalid-request", field]);
    }
    const fits = { state: "succeeded", result: "x".repeat(256 * 1024 - 2) };
    expect((await complete(run, fits)).status).toBe(200);
    expect((await start(run.key)).body.result).toBe(fits.result);
  });
}

/** Runs for operators. */
export function operatesRuns({ it, itWith }: Suite, { fixture, freshKey, get, post, start, begin, complete }: Calls): void {
  it("are looked at: 404 where nothing ran, an ETag that a heartbeat doesn't change, 304 to who knows it", async () => {
    expect(told(await get(`/v1/runs/${freshKey()}`))).toEqual([404, "not-found"]);
    const run = await begin(undefined, { owner: "worker" });
    const running = await get(`/v1/runs/${run.key}`);
    expect(running.body).toMatchObject({ key: run.key, state: "running", attempt: 1, owner: "worker" });
    const tag = running.headers["etag"]!;
    await post(`${run.url}/renew`);
    for (const prefer of [{}, { prefer: "wait=1" }]) {
      const unchanged = await fixture().passing(get(`/v1/runs/${run.key}`, { "if-none-match": tag, ...prefer }));
      expect([unchanged.status, unchanged.text]).toEqual([304, ""]);
    }
    const waiting = get(`/v1/runs/${run.key}`, { "if-none-match": tag, prefer: "wait=4" });
    await sleep(UNDER_WAY_MS);
    await complete(run, SUCCESS);
    const held = await fixture().passing(waiting);
    const seen = held.status === 304 ? await get(`/v1/runs/${run.key}`) : held;
    expect([seen.status, seen.body.state, seen.body.result]).toEqual([200, "succeeded", SUCCESS.result]);
    expect(seen.headers["etag"]).not.toBe(tag);
    expect(seen.body.keptForMs).toBeLessThanOrEqual(MINUTE_MS);
  });

  itWith("operators", "are listed by prefix and state, in order, page by page, without their values", async () => {
    const prefix = `${fixture().prefix}_runs:`;
    for (const name of ["a", "b", "c"]) {
      const run = await begin(prefix + name);
      if (name !== "b") await complete(run, SUCCESS);
    }
    const keysOf = (body: { items: { key: string }[] }): string[] => body.items.map(({ key }) => key.slice(prefix.length));
    const all = await get(`/v1/runs?prefix=${encodeURIComponent(prefix)}`);
    expect(keysOf(all.body)).toEqual(["a", "b", "c"]);
    expect(all.text).not.toContain("re_1");
    expect(keysOf((await get(`/v1/runs?prefix=${prefix}&state=running`)).body)).toEqual(["b"]);
    const page = await get(`/v1/runs?prefix=${prefix}&max=2`);
    const rest = await get(`/v1/runs?prefix=${prefix}&max=2&cursor=${encodeURIComponent(page.body.cursor)}`);
    expect([...keysOf(page.body), ...keysOf(rest.body)]).toEqual(["a", "b", "c"]);
  });

  itWith(
    "operators",
    "are reset with a reason: the next start is a fresh first attempt; not while one runs, and 404 where none was",
    async () => {
      const run = await begin();
      const reset = (key: string, body: object = { reason: "fixed by hand" }) => post(`/v1/runs/${key}/reset`, body);
      expect(told(await reset(run.key))).toEqual([409, "run-in-progress"]);
      await complete(run, { state: "failed", error: "no", retryable: false });
      const refused = await reset(run.key, {});
      expect([...told(refused), refused.body.field]).toEqual([400, "invalid-request", "reason"]);
      expect([(await reset(run.key)).status, (await reset(run.key)).status]).toEqual([200, 200]);
      const fresh = await begin(run.key);
      expect(fresh.body).toMatchObject({ attempt: 1, takeover: false });
      expect(fresh.body.fencingToken).toBeGreaterThan(run.body.fencingToken as number);
      expect(told(await start(run.key, {}, run))).toEqual([410, "lease-over"]);
      expect(told(await reset(freshKey()))).toEqual([404, "not-found"]);
    },
  );
}
