/**
 * The tests of a deployment, on localhost: they pass behind a stand-in for AWS's gateway, so they can run. It doesn't prove that AWS's
 * gateway passes them.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type NpmStart, npmStart } from "../docs/npm-start.js";
import { declareOn } from "./conformance.js";
import { type Deployed, lackOf, targetOf } from "./deployed.js";
import { declareDeployed } from "./only-deployed.js";
import { type StandIn, standIn } from "./stand-in.js";
import { type DeployedNeed } from "./suite.js";

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
