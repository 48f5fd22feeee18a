/** The report of a failure of the AWS SDK. */
import { describe, expect, it } from "vitest";
import { StoreNotConfigured } from "../../lib/store/port.js";
import { storeUnavailable } from "../../lib/store/dynamo/unavailable.js";

describe("a connection that is refused", () => {
  it("names every address that was tried, where a host has several", () => {
    const refused = ["::1", "127.0.0.1"].map((address) => new Error(`connect ECONNREFUSED ${address}:8000`));
    const told = storeUnavailable(new AggregateError(refused));
    expect(told.message).toBe("AggregateError: connect ECONNREFUSED ::1:8000, connect ECONNREFUSED 127.0.0.1:8000");
    expect(told).not.toBeInstanceOf(StoreNotConfigured);
    expect(told.definite).toBe(false);
  });
});

describe("a wrong configuration", () => {
  it("may have happened when an earlier attempt of the AWS SDK stayed without an answer", () => {
    const expired = (attempts: number) => Object.assign(new Error("expired"), { name: "ExpiredTokenException", $metadata: { attempts } });
    expect(storeUnavailable(expired(1))).toMatchObject({ name: "StoreNotConfigured", definite: true });
    expect(storeUnavailable(expired(2))).toMatchObject({ name: "StoreNotConfigured", definite: false });
  });

  it.each([
    ["ValidationException", "Transactions are not supported on this table"],
    ["ItemCollectionSizeLimitExceededException", "Collection size exceeded"],
  ])("is what DynamoDB refuses whoever asks again, and no outage: %s", (name, message) => {
    const error = Object.assign(new Error(message), { name, $metadata: { httpStatusCode: 400, requestId: "R1", attempts: 1 } });
    expect(storeUnavailable(error)).toMatchObject({ name: "StoreNotConfigured", definite: true, message: `${name}: ${message}` });
  });

  it.each([
    ["ThrottlingException", 400, true],
    ["TransactionInProgressException", 400, false],
    ["InternalServerError", 500, false],
  ])("is nothing that may pass: %s", (name, httpStatusCode, definite) => {
    const error = Object.assign(new Error(""), { name, $metadata: { httpStatusCode, requestId: "R1", attempts: 1 } });
    expect(storeUnavailable(error)).toMatchObject({ name: "StoreUnavailable", definite });
  });
});
