/** The two conditional updates that a lock takes at least, to compare this package with. */
import type { UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../lib/core/time.js";

/** Returns a grant and a release, about as large as this package's. */
export function updates(key: string): readonly UpdateItemCommandInput[] {
  const nowMs = systemClock.wallMs();
  const hold = { p: { S: "digest" }, o: { S: "" }, m: { S: "x" }, n: { N: "1" }, t: { N: String(nowMs) }, l: { N: "30000" } };
  const common = {
    TableName: "holdfast",
    Key: { p: { S: "bare/locks/1" }, k: { S: key } },
    ReturnValues: "ALL_OLD",
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  } as const;
  return [
    {
      ...common,
      ConditionExpression: "(attribute_not_exists(h) OR size(h) = :zero) AND (attribute_not_exists(f) OR f < :now)",
      UpdateExpression: "SET h = :h, f = :now, lim = :one, v = if_not_exists(v, :now) + :one, x = :ttl",
      ExpressionAttributeValues: {
        ":h": { M: { me: { M: { ...hold, e: { N: String(nowMs + 30_000) } } } } },
        ":now": { N: String(nowMs) },
        ":ttl": { N: String(Math.ceil(nowMs / 1000) + 86_400) },
        ":zero": { N: "0" },
        ":one": { N: "1" },
      },
    },
    {
      ...common,
      ConditionExpression: "h.#me.p = :principal AND h.#me.e > :now AND x >= :now2",
      UpdateExpression: "SET v = v + :one, ox = :now REMOVE h.#me",
      ExpressionAttributeNames: { "#me": "me" },
      ExpressionAttributeValues: {
        ":principal": { S: "digest" },
        ":now": { N: String(nowMs) },
        ":now2": { N: "0" },
        ":one": { N: "1" },
      },
    },
  ];
}
