/** A correct request of every route that reads the table's records, with small values and with large ones. */
import {
  ACQUIRE,
  CANCEL_START,
  CHECK,
  CHECK_RUN,
  COMPLETE_RUN,
  INSPECT_RUN,
  RELEASE,
  RENEW,
  RENEW_RUN,
  RESET,
  START,
} from "../support/direct-service.js";

type Request = readonly [routeKey: string, body?: object];

const LEASE = "/v1/locks/{key}/leases/{leaseId}";
const TO = "01a1fadb-2b13-71b0-b423-0517604dd9ad";

/** The requests that end a lease, at its holder's wish. */
export const ENDINGS: readonly Request[] = [[RELEASE], [CANCEL_START]];

/** The other requests. */
export const DECISIONS: readonly Request[] = [
  [ACQUIRE],
  [RENEW],
  [CHECK],
  [`POST ${LEASE}/mode`, { mode: "shared", fencingToken: 1 }],
  [`POST ${LEASE}/transfer`, { leaseId: TO }],
  [`POST ${LEASE}/wait`, { condition: "x", leaseId: TO }],
  [`POST ${LEASE}/notify`, { condition: "x", sequence: 1 }],
  ["POST /v1/locks/{key}/break", { reason: "x", fencingToken: 1 }],
  ["GET /v1/locks/{key}"],
  ["GET /v1/locks"],
  ["PUT /v1/lock-sets/{leaseId}", { keys: ["ORDER_1"] }],
  ["POST /v1/lock-sets/{leaseId}/renew", { keys: ["ORDER_1"] }],
  [START],
  [CHECK_RUN],
  [RENEW_RUN],
  [RENEW_RUN, { checkpoint: "x".repeat(2_000) }],
  [COMPLETE_RUN, { state: "succeeded" }],
  [COMPLETE_RUN, { state: "succeeded", result: "x".repeat(2_000) }],
  [RESET, { reason: "x" }],
  ["POST /v1/limits/{key}/reset", { reason: "x" }],
  ["POST /v1/limits/{key}/shut", { rates: [{ count: 1, perMs: 1000 }], forMs: 1000, reason: "x" }],
  [INSPECT_RUN],
  ["GET /v1/runs"],
];
