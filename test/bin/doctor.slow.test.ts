/** `doctor`: of an engine's table, and of what a server on loopback answers as AWS does, as a process; and of services, in this one. */
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { jsonOf, run as inProcess } from "./in-process.js";
import { run as holdfast } from "./holdfast.js";

const KEYS = {
  KeySchema: [
    { AttributeName: "p", KeyType: "HASH" },
    { AttributeName: "k", KeyType: "RANGE" },
  ],
  AttributeDefinitions: [
    { AttributeName: "p", AttributeType: "S" },
    { AttributeName: "k", AttributeType: "S" },
  ],
};
const REPLICAS = { Replicas: [{ RegionName: "us-east-1" }, { RegionName: "us-east-2" }] };
const denied = { __type: "com.amazon.coral.service#AccessDeniedException", message: "not allowed" };

/** Runs it against a server that gives these answers to DescribeTable and DescribeTimeToLive. */
async function doctorOf(Table: object | undefined, TimeToLiveDescription?: object) {
  const server = createServer((request, response) => {
    const isTtl = String(request.headers["x-amz-target"]).endsWith("DescribeTimeToLive");
    const answer = isTtl ? TimeToLiveDescription && { TimeToLiveDescription } : Table && { Table };
    response.writeHead(answer ? 200 : 400, { "content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "R1" });
    response.end(JSON.stringify(answer ?? denied));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { AWS_ENDPOINT_URL_DYNAMODB: endpoint, AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" };
  return holdfast(["--table", "locks", "doctor"], env);
}

describe("doctor", () => {
  it("finds npm start's table fit, and says that another isn't there", async () => {
    const { tableName, env } = await freshTable();
    expect(await holdfast(["doctor"], env)).toEqual({ status: 0, stdout: `${tableName}: is fit for locks\n`, stderr: "" });
    const gone = await holdfast(["--table", "none", "doctor"], env);
    expect(gone).toMatchObject({ status: 78, stderr: expect.stringContaining("there is no table none") as string });
  });

  it("refuses replicas that decide on their own copies, by name", async () => {
    const found = await doctorOf({ ...KEYS, ...REPLICAS, MultiRegionConsistency: "EVENTUAL" }, { TimeToLiveStatus: "DISABLED" });
    expect(found).toMatchObject({
      status: 78,
      stdout: "",
      stderr: expect.stringMatching(/^holdfast: locks: .*EVENTUAL \(MREC\)/) as string,
    });
  });

  it("finds a strongly consistent table fit without a TTL, and tells its Regions", async () => {
    const found = await doctorOf({ ...KEYS, ...REPLICAS, MultiRegionConsistency: "STRONG" }, { TimeToLiveStatus: "DISABLED" });
    expect(found.stdout).toBe("locks: is fit for locks, strongly consistent in several Regions: us-east-1, us-east-2\n");
  });

  it("refuses a table without a TTL, unless it may not know of it", async () => {
    expect(await doctorOf(KEYS, { TimeToLiveStatus: "DISABLED" })).toMatchObject({ status: 78 });
    expect(await doctorOf(KEYS)).toMatchObject({ status: 0 });
  });

  it("says nothing of a table that it may not look at", async () => {
    expect(await doctorOf(undefined)).toEqual({
      status: 0,
      stdout: "locks: nothing is known of it: the right dynamodb:DescribeTable is missing\n",
      stderr: "",
    });
  });
});

describe("doctor of services", () => {
  /** Serves this table, and writes the URL into it unless `isListed` is false. Returns the URL. */
  async function serviceOn({ env }: FreshTable, isListed = true): Promise<string> {
    const gateway = await startGateway({ handler: (...event) => handler(...event), port: 0 });
    onTestFinished(() => gateway.close());
    const handler = compose({ ...env, ...(isListed && { HOLDFAST_OWN_URL: gateway.url }) }, { log: () => undefined });
    return gateway.url;
  }

  it("finds that two URLs serve one table, which lists them", async () => {
    const table = await freshTable();
    const [one, other] = [await serviceOn(table), await serviceOn(table)];
    expect(await inProcess(["doctor"], { HOLDFAST_URL: `${one},${other}` })).toEqual({
      status: 0,
      stdout: `${one}: answers (0.1.0); its table lists it\n${other}: answers (0.1.0); its table lists it; the same table as ${one}\n`,
      stderr: "",
    });
    expect(await jsonOf(["--url", `${one},${other}`, "doctor"], {})).toEqual({
      doors: [
        { url: one, version: "0.1.0", isListed: true },
        { url: other, version: "0.1.0", isListed: true, table: "same" },
      ],
    });
  });

  it.each([
    ["another table", true, "its table lists it; another table than", 78],
    [
      "a table that doesn't list it",
      false,
      "its table doesn't list it: HOLDFAST_OWN_URL isn't this URL; nothing shows if it is the table of",
      0,
    ],
  ])("tells of a URL that serves %s", async (_what, isListed, words, status) => {
    const [one, other] = [await serviceOn(await freshTable()), await serviceOn(await freshTable(), isListed)];
    const found = await inProcess(["--url", `${one},${other}`, "doctor"], {});
    expect(found).toMatchObject({ status, stdout: expect.stringContaining(`${other}: answers (0.1.0); ${words} ${one}\n`) as string });
  });

  it("tells of a URL where nobody answers, and of the next one all the same", async () => {
    const there = await serviceOn(await freshTable());
    const found = await inProcess(["--url", `http://127.0.0.1:1,${there}`, "doctor"], {});
    expect(found.status).toBe(69);
    expect(found.stdout).toMatch(/^http:\/\/127\.0\.0\.1:1: doesn't answer: .+\n.*: answers \(0\.1\.0\); its table lists it\n$/);
  });
});
