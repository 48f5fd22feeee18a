/** The OpenAPI document and the answers about runs: the service checks its own answers against the document's schemas. */
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { ANSWERS } from "../../lib/contract/answers.js";
import { openapi } from "../../lib/contract/openapi.js";
import { type JsonSchema, expanded, fits } from "../support/json-schema.js";

const document = openapi() as unknown as { readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> } };
const schemas = expanded(document.components.schemas);
const TO = "01a1fadb-2b13-71b0-b423-0517604dd9ad";

describe("the document and what is answered", () => {
  const LEASE = {
    ...{ key: "ORDER_1", leaseId: TO, owner: "", mode: "exclusive", permits: 1, holdCount: 1, fencingToken: 7 },
    ...{ leaseMs: 30_000, remainingMs: 30_000, renewAfterMs: 10_000, version: 8, serverTimeMs: 9 },
  };
  const STARTED = { state: "running", attempt: 1, takeover: false, ...LEASE };
  const RUN = { key: "ORDER_1", version: 8, state: "succeeded", attempt: 1, fencingToken: 7, keptForMs: 60_000 };
  const BODIES: readonly (readonly [name: "Started" | "StartedOrReplayed" | "Run" | "RunList", good: boolean, body: object])[] = [
    ["Started", true, STARTED],
    ["Started", true, { ...STARTED, checkpoint: null }],
    ["Started", false, LEASE],
    ["Started", false, { ...STARTED, attempt: 0 }],
    ["Started", false, { ...STARTED, fingerprint: "f" }],
    ["StartedOrReplayed", true, STARTED],
    ["StartedOrReplayed", true, { state: "succeeded", attempt: 1, result: null }],
    ["StartedOrReplayed", true, { state: "failed", attempt: 2, error: { a: 1 } }],
    ["StartedOrReplayed", true, { state: "succeeded", attempt: 1, resultOmitted: true }],
    ["StartedOrReplayed", false, { state: "succeeded" }],
    ["StartedOrReplayed", false, { state: "succeeded", attempt: 1, leaseId: TO }],
    ["Run", true, RUN],
    ["Run", true, { ...RUN, keptForMs: "forever", result: [] }],
    ["Run", false, { ...RUN, leaseId: TO }],
    ["Run", false, { ...RUN, principal: "p" }],
    ["Run", false, { ...RUN, state: "retry" }],
    ["RunList", true, { items: [RUN], cursor: "ORDER_1" }],
    ["RunList", false, { items: [{ ...RUN, fingerprint: "f" }] }],
  ];

  it.each(BODIES)("agree on %s (%s): %j", (name, good, body) => {
    expect([fits(schemas[name]!, body), v.is(ANSWERS[name], body)]).toEqual([good, good]);
  });
});
