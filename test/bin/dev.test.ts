/** `holdfast dev`: the API on this machine, with its log, its seed, and its ports. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pico from "picocolors";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { logText } from "../../bin/serve/log-text.js";
import { PLAIN } from "../../bin/terminal.js";
import { startLocalService } from "../../infra/local/local-service.js";
import { createLockClient } from "../../lib/index.js";
import type { LogLine } from "../../lib/service/log.js";
import { type Running, run, start } from "./in-process.js";

const TOKEN = String.raw`token …\d{6}`;
const TIME = String.raw`\d\d:\d\d:\d\d`;

let directory: string;
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), "holdfast-dev-"))));
afterAll(() => rm(directory, { recursive: true }));

const running: Running[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) {
    one.signal("SIGTERM");
    await one.ended;
  }
});

/** Starts it on a free port. Resolves when it says that it is ready. */
async function dev(options: readonly string[] = [], common: readonly string[] = []) {
  const started = start([...common, "dev", "--port", "0", ...options], {});
  running.push(started);
  const ready = await started.printed(/Lock activity:\n|"event":"ready".*\n/);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(ready)?.[0] ?? "";
  return { ...started, ready, url };
}

async function seedFile(content: unknown): Promise<string> {
  const file = join(directory, `${randomUUID()}.json`);
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

describe("holdfast dev", () => {
  it("with a clock that is ahead refuses as a service does in an incident; control: within the guard it decides", async () => {
    const skewed = await dev(["--clock-skew", "15s"]);
    expect(skewed.ready).toContain("15s ahead of the gateway's");
    await expect(createLockClient({ url: skewed.url }).tryAcquire("ORDER_1")).rejects.toMatchObject({ code: "clock-skew" });
    const { url } = await dev(["--clock-skew", "5s"]);
    expect(await createLockClient({ url }).tryAcquire("ORDER_1")).not.toBeNull();
  });

  it("says where it serves, logs who gets what, and ends at a signal", async () => {
    const { url, ready, printed, signal, ended } = await dev();
    expect(ready).toContain(`export HOLDFAST_URL=${url}\n`);
    expect(ready).toContain("in memory");
    const locks = createLockClient({ url, owner: "checkout-7" });
    await locks.withLock("ORDER_1", async () =>
      expect(
        await locks
          .scope("another-scope-of-16")
          .tryAcquire("ORDER_1")
          .catch(() => null),
      ).toBe(null),
    );
    await locks.runOnce("invoice:1", () => "sent");
    const [, log = ""] = (await printed(/recorded +run invoice:1/)).split("Lock activity:\n");
    const took = String.raw`(?:\d+ms|\d+(?:\.\d)?s)`;
    const lines = [
      `granted   ORDER_1       checkout-7    ${TOKEN}, waited ${took}`,
      `refused   ORDER_1       checkout-7    locked`,
      `released  ORDER_1       checkout-7    held ${took}`,
      `granted   run invoice:1  checkout-7    ${TOKEN}, attempt 1, waited ${took}`,
      `released  run invoice:1  checkout-7    held ${took}`,
      `recorded  run invoice:1  checkout-7    attempt 1, succeeded`,
    ];
    expect(log).toMatch(new RegExp(`^${lines.map((line) => `${TIME}  ${line}\n`).join("")}$`));
    await locks.close();
    signal("SIGINT");
    expect((await ended).status).toBe(130);
    await expect(fetch(`${url}/v1/health`)).rejects.toThrow();
  });

  it("prints lines of JSON with --json, the first when it is ready", async () => {
    const { url, printed } = await dev([], ["--json"]);
    await createLockClient({ url, owner: "me" }).tryAcquire("k", { heartbeat: false });
    const lines = (await printed(/"granted"/)).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { event: "ready", url, pid: process.pid, locks: "memory" },
      { event: "granted", id: "k", owner: "me" },
    ]);
  });

  it("begins with the locks and runs of a seed, which it holds and does not log", async () => {
    const seed = await seedFile({
      locks: [
        { key: "ORDER_1", owner: "checkout-7" },
        { key: "gate", limit: 3, permits: 2 },
      ],
      runs: [
        { key: "invoice:1", result: { sent: true } },
        { key: "invoice:2", error: "no address" },
      ],
    });
    const { url, ready } = await dev(["--seed", seed]);
    expect(ready).not.toContain("granted");
    const listed = await run(["ls", "--json"], { HOLDFAST_URL: url });
    expect(JSON.parse(listed.stdout)).toMatchObject({ items: [{ key: "ORDER_1", holders: [{ owner: "checkout-7" }] }, { key: "gate" }] });
    const shown = await Promise.all(["invoice:1", "invoice:2"].map((key) => run(["show", "--run", key, "--json"], { HOLDFAST_URL: url })));
    expect(shown.map(({ stdout }) => JSON.parse(stdout))).toMatchObject([
      { state: "succeeded", result: { sent: true } },
      { state: "failed" },
    ]);
  });

  it("answers to localhost, and to each name of --allow-host", async () => {
    const { url } = await dev(["--allow-host", "host.docker.internal", "--allow-host", "box.test"]);
    const statuses = ["localhost", "host.docker.internal:4653", "box.test", "evil.example"].map(async (host) => {
      const [response] = await once(get(`${url}/v1/health`, { headers: { host } }), "response");
      response.resume();
      return response.statusCode;
    });
    expect(await Promise.all(statuses)).toEqual([200, 200, 200, 403]);
  });

  it("keeps the locks in the DynamoDB at --endpoint, in the table of --table", async () => {
    const table = `dev-${randomUUID()}`;
    const { url, ready, printed } = await dev(["--endpoint", inject("engineEndpoint")], ["--table", table]);
    expect(ready).toContain(`table ${table} at ${inject("engineEndpoint")}`);
    const lease = await createLockClient({ url }).tryAcquire("k", { heartbeat: false });
    expect(lease?.fencingToken).toBeGreaterThan(0);
    await printed(/granted +k/);
  });

  it("serves the locks like DynamoDB with --like-dynamodb, and says so", async () => {
    const { url, ready, printed } = await dev(["--like-dynamodb"]);
    expect(ready).toContain("in memory, with DynamoDB's latency, units and throttles\n");
    await createLockClient({ url }).tryAcquire("k", { heartbeat: false });
    await printed(/granted +k/);
  });

  it("refuses a port that is taken, by name, and takes the next free one if none was named", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const refused = await run(["dev", "--port", String(port)], {});
    expect([refused.status, refused.stderr]).toEqual([
      78,
      `holdfast: Port ${port} is in use: set --port to another, or --port 0 for any free one\n`,
    ]);
    const service = await startLocalService({ ports: [port, 0], log: () => undefined, onFailure: () => undefined });
    expect(service.port).not.toBe(port);
    await service.close();
    other.close();
  });

  it.each<readonly [args: readonly string[], status: number, message: string]>([
    [["dev", "npm", "test"], 64, "dev: put -- before the command\nholdfast dev -- npm test\n"],
    [["dev", "4660"], 64, 'dev: unexpected argument "4660"\nDid you mean --port 4660?\n'],
    [["--url", "http://x", "dev"], 64, "--url: dev serves the API itself\nLeave it out, or say --port.\n"],
    [["dev", "--like-dynamodb", "--endpoint", "http://x"], 64, "--like-dynamodb: keeps the locks in memory, not at --endpoint\n"],
    [["dev", "--endpoint", "nowhere"], 78, "--endpoint is not a URL: nowhere (it should look like http://127.0.0.1:8000)\n"],
    [["dev", "--endpoint", "http://127.0.0.1:9"], 78, "No DynamoDB answers at --endpoint http://127.0.0.1:9: nothing listens there\n"],
    [["dev", "--allow-host", "a:1"], 78, "--allow-host a:1 is not a host name: give it without scheme and port\n"],
  ])("%j is status %i", async (args, status, message) => {
    expect(await run(args, {})).toEqual({ status, stdout: "", stderr: `holdfast: ${message}` });
  });

  it.each<readonly [content: unknown, message: string | RegExp]>([
    ["{", "it is not JSON"],
    [[], "it must be an object with locks, runs or both"],
    [{ keys: [] }, "keys: there is no such member; it has locks and runs"],
    [{ locks: {} }, "locks: it must be a list of objects, each with a key"],
    [{ locks: [{}] }, /^locks\[0\]: .*key/],
    [{ locks: [{ key: "a" }, { key: "a" }] }, "locks[1]: a is held already"],
    [{ locks: [{ key: "a", leaseSeconds: 3 }] }, /^locks\[0\]: .*leaseSeconds/],
    [{ runs: [{ key: "a b", result: 1 }] }, /^runs\[0\]: key: /],
  ])("a seed %j is status 64", async (content, message) => {
    const file = await seedFile(content);
    const { status, stderr } = await run(["dev", "--port", "0", "--seed", file], {});
    expect(status).toBe(64);
    const [, said = ""] = stderr.split(`--seed: ${file}: `);
    expect(said.trimEnd()).toEqual(typeof message === "string" ? message : expect.stringMatching(message));
  });

  it("names a seed that is not there", async () => {
    const { status, stderr } = await run(["dev", "--seed", join(directory, "none.json")], {});
    expect([status, stderr]).toEqual([64, `holdfast: --seed: ${join(directory, "none.json")}: it can't be read (ENOENT)\n`]);
  });
});

describe("a line of its log", () => {
  const AT_MS = new Date(2026, 0, 31, 22, 11, 42, 999).getTime();
  const LINE = { event: "ended", kind: "lock", model: "STOCK", id: "9", operateAtMs: AT_MS, owner: "shop-b" } as LogLine;
  const COLOURS = { columns: 80, colors: pico.createColors(true) };
  const textOf = (change: Partial<LogLine>, columns?: number): string => logText({ ...LINE, ...change }, { ...PLAIN, columns });

  it("never moves the cursor of a terminal, whatever an owner is called", () => {
    expect(textOf({ event: "queued", owner: "\u001b[2J", position: 2 })).toBe(
      "22:11:42  queued    STOCK_9       \u{FFFD}[2J          place 2",
    );
  });

  it.each<readonly [word: string, change: Partial<LogLine>, details: string]>([
    ["released", { reason: "released", heldMs: 1500 }, "held 1.5s"],
    ["lost", { reason: "expired", heldMs: 4000, lapsedMs: 1000 }, "lease ran out, held at most 3s"],
    ["broken", { reason: "broken: host is gone", heldMs: 4000 }, "host is gone, held at most 4s"],
    ["granted", { event: "granted", fencingToken: 1_795_000_212_684, waitedMs: 12 }, "token …212684, waited 12ms"],
    ["queued", { event: "queued", position: 2 }, "place 2"],
  ])("says %s, in local time and in less than 80 characters", (word, change, details) => {
    const text = textOf(change);
    expect(text).toBe(`22:11:42  ${word.padEnd(8)}  STOCK_9       shop-b        ${details}`.trimEnd());
    expect(text.length).toBeLessThan(80);
  });

  it("is cut to the width of a terminal, and to no other", () => {
    const long = { owner: "o".repeat(50), id: `${"9".repeat(60)}-2026`, reason: "released", heldMs: 1500 } as const;
    expect(textOf(long, 80)).toMatch(/^22:11:42 {2}released {2}STOCK_9+…9+-2026 {2}o+…o+ {2}held 1\.5s$/);
    expect(textOf(long, 80).length).toBe(80);
    expect(textOf(long)).toContain(`STOCK_${long.id}  ${long.owner}  held 1.5s`);
  });

  it("has good and bad ends in different colours", () => {
    const { green, red, yellow, dim } = COLOURS.colors;
    const coloured = (change: Partial<LogLine>): string => logText({ ...LINE, ...change }, COLOURS);
    expect(coloured({ event: "granted" })).toContain(green("granted "));
    expect(coloured({ reason: "released" })).toContain(dim("released"));
    expect(coloured({ reason: "expired" })).toContain(red("lost    "));
    expect(coloured({ reason: "broken" })).toContain(red("broken  "));
    expect(coloured({ reason: "cancelled" })).toContain(yellow("gave up "));
    expect(coloured({ event: "recorded", outcome: "failed", errorName: "FinalError" })).toMatch(/recorded.* failed FinalError$/);
    expect(coloured({ event: "recorded", outcome: "failed" })).toContain(red("recorded"));
    const skipped = coloured({ event: "recorded", outcome: "failed", errorName: "TickSkipped" });
    expect(skipped).toMatch(/ skipped$/);
    expect(skipped).not.toContain(red("recorded"));
  });
});

describe("holdfast dev --regions", () => {
  const cut = (url: string, state: string): Promise<Response> => fetch(`${url}/dev/region?state=${state}`, { method: "POST" });

  it("serves one table in each Region, which can be cut off and comes back", async () => {
    const { ready } = await dev(["--regions", "us-east-1,us-east-2"]);
    const [, urls = ""] = /export HOLDFAST_URL=(\S+)/.exec(ready) ?? [];
    const [east = "", west = ""] = urls.split(",");
    const [here, there] = [east, west].map((url) => createLockClient({ url }));
    const lease = await here!.acquire("ORDER_1");
    expect(await there!.tryAcquire("ORDER_1")).toBeNull();
    // A set takes a table without transactions.
    await here!.withLocks(["a", "b"], () => undefined);

    expect(await (await cut(east, "isolated")).text()).toBe("us-east-1 is isolated\n");
    await expect(here!.inspect("ORDER_1")).rejects.toMatchObject({ code: "unavailable" });
    expect((await there!.inspect("ORDER_1")).holders).toMatchObject([{ fencingToken: lease.fencingToken }]);
    await cut(east, "open");
    expect((await here!.inspect("ORDER_1")).holders).toHaveLength(1);
    await Promise.all([here!.close(), there!.close()]);
  });

  it("has its services on ports that follow each other, where one is given", async () => {
    // Below those that the system hands out for 0, so that no other test has it.
    const port = 20_000 + (process.pid % 10_000);
    const started = start(["dev", "--regions", "us-east-1,us-east-2", "--port", String(port)], {});
    running.push(started);
    const ready = await started.printed(/Lock activity:\n/);
    expect(ready).toContain(`export HOLDFAST_URL=http://127.0.0.1:${port},http://127.0.0.1:${port + 1}\n`);
  });

  it("is told where to cut a Region off, and of a state that there is not", async () => {
    const { ready, url } = await dev(["--regions", "us-east-1,us-east-2"]);
    expect(ready).toContain(`curl -X POST "${url}/dev/region?state=silent"`);
    const answer = await cut(url, "gone");
    expect([answer.status, await answer.text()]).toEqual([400, 'state: must be one of open, silent, isolated, given "gone"\n']);
  });

  it("takes no answer from a Region that is silent, until it is back", async () => {
    const { url } = await dev(["--regions", "us-east-1,us-east-2"]);
    await cut(url, "silent");
    const asked = fetch(`${url}/v1/health`, { signal: AbortSignal.timeout(300) });
    await expect(asked).rejects.toMatchObject({ name: "TimeoutError" });
    await cut(url, "open");
    expect((await fetch(`${url}/v1/health`)).status).toBe(200);
  });

  it.each([
    { options: ["--regions", "us-east-1"], says: /2 or 3 different Regions/ },
    { options: ["--regions", "us-east-1,us-east-1"], says: /2 or 3 different Regions/ },
    { options: ["--regions", "here,there"], says: /2 or 3 different Regions/ },
    { options: ["--regions", "us-east-1,us-east-2", "--like-dynamodb"], says: /a table of its own/ },
  ])("refuses $options", async ({ options, says }) => {
    const { status, stderr } = await run(["dev", ...options], {});
    expect(status).toBe(64);
    expect(stderr).toMatch(says);
  });
});
