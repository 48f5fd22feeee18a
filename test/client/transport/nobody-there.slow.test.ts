/** A URL without a server, or with another one: a wrong URL is reported within seconds, an outage is waited out. */
import { afterEach, describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { createLockClient, key, LockUnavailableError } from "../../../lib/index.js";
import { toProblem } from "../../../lib/contract/problem.js";
import { type StubServer, startStubServer } from "./stub-server.js";

const HELD = { holders: [], waiters: [], key: "k", version: 1, mode: "exclusive", fencingToken: 0 };

let server: StubServer | undefined;
afterEach(() => server?.close());

/** Returns the URL of a server that was closed. */
async function leftUrl(): Promise<string> {
  const left = await startStubServer();
  await left.close();
  return left.url;
}

describe("where nobody ever answered", () => {
  it.each<[what: string, ask: (locks: ReturnType<typeof createLockClient>) => Promise<unknown>]>([
    ["acquire", (locks) => locks.acquire(key("ORDER", 1))],
    ["runOnce", (locks) => locks.runOnce(key("ORDER", 1), () => "done")],
    ["list", (locks) => locks.list()],
  ])("%s gives up after a few attempts, names the URL, and knows that nothing happened", async (_what, ask) => {
    const url = await leftUrl();
    let attempts = 0;
    const counting: typeof fetch = (...args) => {
      attempts++;
      return fetch(...args);
    };
    const error: unknown = await ask(createLockClient({ url, fetch: counting })).catch((thrown: unknown) => thrown);
    expect(error).not.toBeInstanceOf(LockUnavailableError);
    expect(error).toMatchObject({ code: "not-configured", definite: true, retry: "never" });
    expect((error as Error).message).toContain(`no answer (ECONNREFUSED) from ${url}`);
    expect((error as Error).message).toContain("does it run?");
    expect(attempts).toBe(8);
  });
});

describe("where somebody answered before", () => {
  it("it is an outage: asked again for as long as any", async () => {
    server = await startStubServer();
    const { url } = server;
    let attempts = 0;
    const failing: typeof fetch = async (...args) => {
      attempts++;
      if (attempts === 1 || attempts > 12) return new Response(JSON.stringify(HELD), { status: 200, headers: { etag: '"1"' } });
      return fetch(...args);
    };
    await server.close();
    const locks = createLockClient({ url, fetch: failing });
    await locks.inspect("k");
    expect(await locks.inspect("k")).toEqual(HELD);
    expect(attempts).toBe(13);
  });
});

describe("where another server answers", () => {
  it.each<[what: string, ask: (locks: ReturnType<typeof createLockClient>) => Promise<unknown>]>([
    ["a run", (locks) => locks.runs.get("RUN_1")],
    ["a key", (locks) => locks.inspect("KEY_1")],
    ["what is left of a limit", (locks) => locks.limiter("LIMIT_1", { rates: [{ count: 5, perMs: 1000 }] }).remaining()],
  ])("its 404 is not taken for the service's word on %s", async (_what, ask) => {
    server = await startStubServer();
    server.answer({ status: 404, body: "<html>" });
    await expect(ask(createLockClient({ url: server.url }))).rejects.toMatchObject({ code: "not-found", definite: true });
  });

  it("control: the service's own is: a run that never ran is null", async () => {
    server = await startStubServer();
    server.answer({ status: 404, body: toProblem(refuse("not-found"), "/v1/runs/RUN_1") });
    expect(await createLockClient({ url: server.url }).runs.get("RUN_1")).toBeNull();
  });
});
