/** The messages of `GET /v1/health`. */
import * as v from "valibot";
import { integer } from "./fields.js";

const flag = v.optional(v.picklist(["0", "1"], "must be 0 or 1"), "0");
const durationMs = integer(0, Number.MAX_SAFE_INTEGER);

/** The query of `GET /v1/health`. */
export const HealthQuery = v.strictObject({ deep: flag, caller: flag });

/** The caller as the service knows it, and the parameters of the records. */
const caller = v.strictObject({
  namespace: v.string(),
  principal: v.pipe(v.string(), v.description("Who the gateway authenticated: leases answer to this principal.")),
  format: v.pipe(integer(0, Number.MAX_SAFE_INTEGER), v.description("The version of the records' format; 0: in memory.")),
  clockErrorMs: durationMs,
  retentionMs: durationMs,
});

/** The service is up. */
export const Health = v.strictObject({
  status: v.literal("ok"),
  version: v.string(),
  serverTimeMs: durationMs,
  caller: v.optional(caller),
});
