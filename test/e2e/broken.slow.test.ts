/**
 * Mutation tests of the conformance tests: each test named here passes on the correct service, and fails on the same
 * service with one mistake in between.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Mistake, broken, changed, remapped, withheld } from "./broken.js";
import { callsOf } from "./calls.js";
import { declareConformance } from "./conformance.js";
import { openFixture } from "./fixture.js";
import { listed } from "./suite.js";
import type { Target } from "./target.js";
import { type WholeTarget, twoAccounts } from "./two-accounts.js";

const LEASE = /(\/v1\/locks\/)([^/]+)(\/leases\/)([^/]+)/;

let good: WholeTarget;
beforeAll(async () => void (good = await twoAccounts()));
afterAll(() => good.close());

/** Changes every problem document. */
const problems = (change: (body: Record<string, unknown>, path: string) => void): Mistake => ({
  answered({ status, body }, { path }) {
    if (status >= 400) change(body as Record<string, unknown>, path);
  },
});
/** Changes every key that an acquire names. */
const keys = (change: (key: string) => string): Mistake => ({
  asked(question) {
    if (question.method === "PUT") question.path = question.path.replace(LEASE, (_all, a, key, b, id) => `${a}${change(key)}${b}${id}`);
  },
});

function leaky(): Mistake {
  let last = "";
  return {
    answered({ status, body }, { path }) {
      const [, , , , leaseId = ""] = LEASE.exec(path) ?? [];
      if (status === 201) last = leaseId;
      if (status === 423) body.detail = `held by ${last}`;
    },
  };
}

/** Its first race looks correct, and only the control beside it fails. */
function oneKeyForAll(): Mistake {
  return {
    asked: keys(() => "the-one-key").asked!,
    answered({ body }, { asked }) {
      if (body?.instance !== undefined) body.instance = /^(\/v1\/locks\/[^/?]+)/.exec(asked)?.[1];
    },
  };
}

let unique = 0;

const MISTAKES: readonly (readonly [mistake: string, test: string, make: () => Mistake])[] = [
  ["renames etag", "of a free key is 201", () => remapped("etag")],
  ["renames idempotent-replayed", "again is 200: the same lease", () => remapped("idempotent-replayed")],
  ["renames lease-state", "is 204 released", () => remapped("lease-state")],
  ["renames retry-after", "of a held key is 423 at once", () => remapped("retry-after")],
  ["renames allow", "under a method that they don't take are 405", () => remapped("allow")],
  ["keeps if-none-match to itself", "has an ETag that who holds and who waits change", () => withheld("if-none-match")],
  ["keeps prefer to itself", "gives a place by 202", () => withheld("prefer")],
  [
    "does not decode a path",
    "may be percent-encoded",
    () => ({ asked: (question) => void (question.path = question.path.replaceAll("%", "%25")) }),
  ],
  [
    "decodes a path twice",
    "are 400, naming key, decoded once",
    () => ({ asked: (question) => void (question.path = question.path.replaceAll("%25", "%")) }),
  ],
  [
    "answers for the service where it has no path",
    "are 404, as a problem document",
    () => changed(404, (answer) => void (answer.body = { message: "Not Found" })),
  ],
  [
    "calls a problem plain JSON",
    "of a held key is 423 at once",
    () => changed(423, ({ headers }) => headers.set("content-type", "application/json")),
  ],
  ["tells a held key by another status", "of a held key is 423 at once", () => changed(423, (answer) => void (answer.status = 409))],
  ["shows the holder's leaseId", "of a held key is 423 at once", leaky],
  [
    "shows a leaseId in a problem's instance",
    "of a held key is 423 at once",
    () => problems((body, path) => void (body["instance"] = path)),
  ],
  ["is not sure of its refusals", "of a held key is 423 at once", () => problems((body) => void (body["definite"] = false))],
  [
    "rounds the seconds down",
    "of a held key is 423 at once",
    () => changed(423, ({ headers, body }) => headers.set("retry-after", String(Math.floor(body.retryAfterMs / 1000)))),
  ],
  ["does not name the field", "with an unknown field", () => problems((body) => void delete body["field"])],
  ["says more than its document", "of a free key is 201", () => changed(201, ({ body }) => void (body.principal = "me"))],
  [
    "has a status that is not in its document",
    "is 410 lease-lost once it was released",
    () => changed(410, (answer) => void Object.assign(answer, { status: 409, body: { ...answer.body, status: 409 } })),
  ],
  [
    "gives every grant the same token",
    "after a release has a greater token",
    () => changed(201, ({ body }) => void (body.fencingToken = 1)),
  ],
  [
    "shows a scope",
    "let a nested acquire in",
    () => changed(201, ({ body }, { text }) => void (body.owner = JSON.parse(text).scope ?? "")),
  ],
  ["forgets a result", "of a success is recorded", () => changed(200, ({ body }) => void delete body?.result)],
  ["grants every acquire", "for one key grant it to exactly one", () => keys((key) => `${key}_${++unique}`)],
  ["grants one acquire only", "for one key grant it to exactly one", oneKeyForAll],
  ["takes a repeat for another", "under one leaseId grant one lease", () => keys((key) => `${key}_${++unique}`)],
  ["forgets a set's keys", "are granted whole: 201", () => changed(201, ({ body }) => void (body.fencingTokens = {}))],
  [
    "has a token that is no number in a set",
    "are granted whole: 201",
    () => changed(201, ({ body }) => void Object.keys(body.fencingTokens as object).forEach((key) => (body.fencingTokens[key] = "7"))),
  ],
  ["lets a lease that is over live on", "is final: a late duplicate", () => changed(410, (answer) => void (answer.status = 200))],
];

/** The test with that in its name, ready to run. A broken service is good enough for the fixture. */
async function prepared(name: string, target: Target): Promise<() => Promise<void>> {
  const fixture = await openFixture(target);
  const found = listed((suite) =>
    declareConformance(
      suite,
      callsOf(() => fixture),
    ),
  ).filter((test) => test.name.includes(name));
  expect(
    found.map((test) => test.name),
    name,
  ).toHaveLength(1);
  return () => found[0]!.run();
}

/** Checks that the test passes on the correct service and fails on the other. */
async function tried(name: string, mistaken: Target): Promise<void> {
  const { close: _shared, ...control } = good;
  await (
    await prepared(name, control)
  )();
  const run = await prepared(name, mistaken);
  await expect(run()).rejects.toThrow(/expected/);
}

describe("a service that", () => {
  it.each(MISTAKES)("%s fails: %s", async (_mistake, name, make) => {
    await tried(name, broken(good, make()));
  });

  it.each<[mistake: string, test: string, mistaken: (target: WholeTarget) => Partial<Target>]>([
    ["does not know its callers apart", "is refused everything that is the holder's", () => ({ asAnother: good.fetch })],
    ["does not know its accounts apart", "meets nobody", () => ({ asStranger: good.asAnother })],
    ["shows one account the runs of another", "one of another namespace has runs of its own", () => ({ asStranger: good.asAnother })],
  ])("%s fails: %s", async (_mistake, name, mistaken) => {
    const { close: _shared, ...rest } = good;
    await tried(name, { ...rest, ...mistaken(good) });
  });
});
