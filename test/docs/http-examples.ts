/** The examples of docs/http-api.md: a few lines of curl for the most used operations, run one after another by its test. */

/** One line of curl. */
export interface HttpExample {
  /** The explanation before the line. */
  readonly says: string;
  readonly line: string;
  /** The response's status. */
  readonly status: number;
}

const LEASE = "$URL/v1/locks/ORDER_1231/leases/$LEASE";
const RUN = "$URL/v1/runs/REFUND_12/leases/$RUN";
const JSON_BODY = "-H 'content-type: application/json' -d";

/** By operationId, in an order in which each returns its documented response. */
export const EXAMPLES: Readonly<Record<string, HttpExample>> = {
  acquire: {
    says: "granted",
    line: `curl -i -X PUT ${LEASE} ${JSON_BODY} '{"leaseMs": 30000, "owner": "checkout-7"}'`,
    status: 201,
  },
  check: { says: "still held", line: `curl -i ${LEASE}`, status: 200 },
  renew: { says: "another 30 s", line: `curl -i -X POST ${LEASE}/renew`, status: 200 },
  inspect: { says: "the holders, never the leaseId", line: "curl -i $URL/v1/locks/ORDER_1231", status: 200 },
  list: { says: "all held keys with the prefix", line: 'curl -i "$URL/v1/locks?prefix=ORDER_&max=10"', status: 200 },
  renewMany: {
    says: "one answer for each lease",
    line: `curl -i -X POST $URL/v1/renewals ${JSON_BODY} '{"leases": [{"key": "ORDER_1231", "leaseId": "'$LEASE'"}]}'`,
    status: 200,
  },
  release: { says: "`Lease-State: released`; again: the same", line: `curl -i -X DELETE ${LEASE}`, status: 204 },
  acquireSet: {
    says: "both or none",
    line: `curl -i -X PUT $URL/v1/lock-sets/$SET ${JSON_BODY} '{"keys": ["ACCOUNT_1", "ACCOUNT_2"]}'`,
    status: 201,
  },
  releaseSet: {
    says: "how each lease ended",
    line: `curl -i -X POST $URL/v1/lock-sets/$SET/release ${JSON_BODY} '{"keys": ["ACCOUNT_1", "ACCOUNT_2"]}'`,
    status: 200,
  },
  start: { says: "attempt 1 is yours", line: `curl -i -X PUT ${RUN} ${JSON_BODY} '{"fingerprint": "1500"}'`, status: 201 },
  complete: {
    says: "recorded",
    line: `curl -i -X PUT ${RUN}/outcome ${JSON_BODY} '{"state": "succeeded", "result": {"refund": "re_1"}}'`,
    status: 200,
  },
  run: { says: "the outcome", line: "curl -i $URL/v1/runs/REFUND_12", status: 200 },
  take: {
    says: "it may start now; what is left of each rate",
    line: `curl -i -X POST $URL/v1/limits/partner-api/takes ${JSON_BODY} '{"rates": [{"count": 100, "perMs": 60000}]}'`,
    status: 200,
  },
  limit: { says: "what is left, and when it is full again", line: "curl -i $URL/v1/limits/partner-api", status: 200 },
  health: { says: "with `?deep=1` it reads the table, too", line: 'curl -i "$URL/v1/health?deep=1"', status: 200 },
};
