/** `doctor`, as a process: of an engine's table, and of what a server on loopback answers as AWS does. */
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { freshTable } from "../support/engine.js";
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

  it("says nothing of a table that it may not look at, nor of one behind a URL", async () => {
    expect(await doctorOf(undefined)).toEqual({
      status: 0,
      stdout: "locks: nothing is known of it: the right dynamodb:DescribeTable is missing\n",
      stderr: "",
    });
    expect(await holdfast(["--url", "http://127.0.0.1:1", "doctor"], {})).toMatchObject({ status: 64 });
  });
});
