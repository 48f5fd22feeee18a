/**
 * The tests of a deployment, on localhost: they pass behind a stand-in for AWS's gateway, and each fails if that
 * stand-in is broken. This proves that they can run and can fail. It doesn't prove that AWS's gateway passes them.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type NpmStart, npmStart } from "../docs/npm-start.js";
import { type Mistake, type Question, carriedThrough, changed, remapped } from "./broken.js";
import { callsOf } from "./calls.js";
import { declareOn } from "./conformance.js";
import { type Deployed, lackOf, targetOf } from "./deployed.js";
import { declareDeployed } from "./only-deployed.js";
import { type ProxyMistakes, startProxy } from "./proxy.js";
import { openFixture } from "./fixture.js";
import { type StandIn, standIn } from "./stand-in.js";
import { type DeployedNeed, listed } from "./suite.js";

const README = readFileSync(new URL("README.md", import.meta.url), "utf8");
const REGION = "eu-central-1";
const PREFIX = "e2e:client~";
/** More than a test's concurrent requests, fewer than the test of throttling sends. */
const AT_ONCE = 30;
const FIRST = { accessKeyId: "AKIDFIRST", secretAccessKey: "first" };
const SESSION = { accessKeyId: "ASIAFIRST", secretAccessKey: "also-first", sessionToken: "token" };
const CLIENT = { accessKeyId: "AKIDCLIENT", secretAccessKey: "client" };
const STAND_IN: StandIn = {
  region: REGION,
  callers: [
    { credentials: FIRST, principal: "first" },
    { credentials: SESSION, principal: "first" },
    { credentials: CLIENT, principal: "client", prefix: PREFIX },
  ],
  atOnce: AT_ONCE,
};

let service: NpmStart;
beforeAll(async () => void (service = await npmStart()));
afterAll(() => service.pressCtrlC());

/** The service behind a stand-in with these mistakes. */
function behind(mistakes: Partial<StandIn> = {}, url = service.url): Deployed {
  return {
    url,
    carry: standIn({ ...STAND_IN, ...mistakes }),
    region: REGION,
    first: FIRST,
    session: SESSION,
    client: { credentials: CLIENT, prefix: PREFIX },
    burst: 3 * AT_ONCE,
  };
}

let carried = 0;
const counted: typeof fetch = (input, init) => {
  carried++;
  return fetch(input, init);
};

declareOn(
  "what only a deployment can show, behind a stand-in",
  () => Promise.resolve(targetOf(behind({ behind: counted }))),
  (suite, calls) => declareDeployed(suite, calls, () => behind({ behind: counted })),
  (need) => lackOf(behind(), need as DeployedNeed),
);

it("sends fewer requests than the README says", () => {
  expect(carried).toBeGreaterThan(0);
  expect(carried).toBeLessThan(Number(/fewer than (\d+) more/.exec(README)?.[1]));
});

/** The test with that name, ready to run. A broken service is good enough for the fixture. */
async function prepared(name: string, on: Deployed): Promise<() => Promise<void>> {
  const fixture = await openFixture(targetOf(on));
  const tests = listed((suite) =>
    declareDeployed(
      suite,
      callsOf(() => fixture),
      () => on,
    ),
  );
  const [found, ...others] = tests.filter((test) => test.name === name);
  expect([typeof found, others], name).toEqual(["object", []]);
  return () => found!.run();
}

/** A gateway that lets the right requests through, with this mistake. */
const making = (mistake: Mistake): Deployed => behind({ behind: carriedThrough(fetch, service.url, mistake) });

/** The service behind a stand-in behind a proxy. */
async function proxied(mistakes: ProxyMistakes, use: (on: Deployed) => Promise<void>): Promise<void> {
  const proxy = await startProxy(service.url, mistakes);
  try {
    await use(behind({}, proxy.url));
  } finally {
    await proxy.close();
  }
}

const path = (change: (question: Question) => string): Mistake => ({ asked: (question) => void (question.path = change(question)) });
const cut: Mistake = {
  answered(answer, { headers }) {
    if (!headers.get("prefer")?.includes("wait=60")) return;
    answer.status = 503;
    answer.body = { message: "Service Unavailable" };
  },
};

const MISTAKES: Readonly<Record<string, Readonly<Record<string, (fails: (on: Deployed) => Promise<void>) => Promise<void>>>>> = {
  "headers > keep their names on the way back, and none comes as x-amzn-remapped-…": {
    "renames etag": (fails) => fails(making(remapped("etag"))),
    "renames retry-after": (fails) => fails(making(remapped("retry-after"))),
    "renames idempotent-replayed and lease-state": (fails) => fails(making(remapped("idempotent-replayed", "lease-state"))),
    "renames a header that nobody reads": (fails) => fails(making(remapped("date"))),
  },
  "headers > reach the service in whatever case they are written": {
    "knows headers in lower case alone": (fails) => proxied({ knowsOnlyLowerCase: true }, fails),
  },
  "keys in a path > with : and ~ are one key, sent as they are or percent-encoded, and both are signed as the gateway checks it": {
    "does not decode": (fails) => fails(making(path((asked) => asked.path.replaceAll("%", "%25")))),
  },
  "keys in a path > are decoded once, and never to another key": {
    "decodes twice": (fails) => fails(making(path((asked) => asked.path.replaceAll("%25", "%")))),
    "cuts a key off": (fails) => fails(making(path((asked) => asked.path.replace(/%(?:25|2F|3F|23)[^/]*/, "")))),
  },
  "a slash at the end of a path > is another path, which the API doesn't have: the service's own 404, and nothing happens to the key": {
    "takes it for the path without it": (fails) => fails(making(path((asked) => asked.path.replace(/\/$/, "")))),
    "takes it for an empty key": (fails) => fails(making(path((asked) => asked.path.replace(/^\/v1\/locks\/$/, "/v1/locks/x")))),
    "answers itself": (fails) => fails(making(changed(404, ({ body }) => void delete body.code))),
  },
  "clocks > of function and gateway are epoch milliseconds that agree with the answer's Date within the guard": {
    "tells the time in seconds": (fails) =>
      fails(making(changed(200, ({ body }) => void (body.serverTimeMs = Math.round(body.serverTimeMs / 1000))))),
    "has a clock that is a minute late": (fails) => fails(making(changed(200, ({ body }) => void (body.serverTimeMs -= 60_000)))),
  },
  "waiting > ends by the service's word and never by the gateway's cut, however long a request would wait": {
    "cuts a long wait": (fails) => fails(making(cut)),
  },
  "waiting > ends by the client's own deadline, long before, and leaves nobody in the queue": {
    "loses a DELETE": (fails) =>
      fails(
        making(path((asked) => (asked.method === "DELETE" ? asked.path.replace(/.$/, (last) => (last === "0" ? "1" : "0")) : asked.path))),
      ),
  },
  "connections > serve several requests, one after the other": {
    "ends its connections": (fails) => proxied({ closesConnections: true }, fails),
  },
  "sizes > over the gateway's 10 MB are its own 413 without a problem, which a client takes as definite": {
    "fails of a large body": (fails) => fails(making(changed(413, (answer) => void (answer.status = 500)))),
  },
  "signatures > that are missing are refused by the gateway: 403 (401 for a token), definite, and nothing happened": {
    "takes anybody": (fails) => fails(behind({ leavesOut: "signature" })),
  },
  "signatures > of another secret are": { "takes anybody": (fails) => fails(behind({ leavesOut: "signature" })) },
  "signatures > over another path or body than were sent are": { "takes anybody": (fails) => fails(behind({ leavesOut: "signature" })) },
  "signatures > for another Region are": { "takes any Region": (fails) => fails(behind({ leavesOut: "region" })) },
  "signatures > of ten minutes ago are": { "takes any time": (fails) => fails(behind({ leavesOut: "time" })) },
  "rights > to a prefix with : and ~ let its keys through, as they are and percent-encoded": {
    "compares the path as it was sent alone": (fails) => fails(behind({ formsOf: (prefix) => [prefix] })),
  },
  "rights > to a prefix let no other key through, however its path is written": {
    "lets everybody do everything": (fails) => fails(behind({ leavesOut: "rights" })),
    "compares a part of the prefix": (fails) => fails(behind({ formsOf: (prefix) => [prefix.slice(0, -1)] })),
  },
  "rights > to a prefix let through no call whose keys are in the body": {
    "lets everybody do everything": (fails) => fails(behind({ leavesOut: "rights" })),
  },
  "rights > of a client let through no call of an operator: break, list, reset": {
    "lets everybody do everything": (fails) => fails(behind({ leavesOut: "rights" })),
  },
  "rights > are a role's: another session of it is the same principal": {
    "takes a session for a principal": (fails) =>
      fails(behind({ callers: STAND_IN.callers.map((caller) => ({ ...caller, principal: caller.credentials.accessKeyId })) })),
  },
  "throttling > is the gateway's own 429 without a problem, which a client takes as definite": {
    "never refuses": (fails) => fails(behind({ atOnce: 1_000 })),
    "refuses by 503": (fails) => {
      const good = behind();
      return fails({
        ...good,
        carry: carriedThrough(
          good.carry,
          good.url,
          changed(429, (answer) => void (answer.status = 503)),
        ),
      });
    },
  },
};

describe("a gateway that", () => {
  const cases = Object.entries(MISTAKES).flatMap(([name, mistakes]) =>
    Object.entries(mistakes).map(([mistake, make]) => ({ mistake, name, make })),
  );

  it.each(cases)("$mistake fails: $name", async ({ name, make }) => {
    await make(async (on) => {
      const run = await prepared(name, on);
      await expect(run()).rejects.toThrow(/expected/);
    });
  });

  it.each(["ORDER_", "e2e", "12:"])("lets no other key through than those of the prefix %s, whatever its letters", async (prefix) => {
    const callers = STAND_IN.callers.map((caller) => (caller.prefix === undefined ? caller : { ...caller, prefix }));
    const on = { ...behind({ callers }), client: { credentials: CLIENT, prefix } };
    const run = await prepared("rights > to a prefix let no other key through, however its path is written", on);
    await run();
  });

  it("is broken once at least for every test", () => {
    const tests = listed((suite) =>
      declareDeployed(
        suite,
        callsOf(() => expect.unreachable()),
        () => expect.unreachable(),
      ),
    );
    expect(Object.keys(MISTAKES).sort()).toEqual(tests.map(({ name }) => name).sort());
  });
});
