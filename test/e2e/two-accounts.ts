/**
 * A service on loopback with callers from two accounts, each a tenant, which `npm start` can't simulate: the real
 * handler behind the local gateway, with records in memory and a clock that tests can advance.
 */
import { startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import type { HttpEvent } from "../../lambda/http.js";
import { createPolicy } from "../../lib/core/policy.js";
import { createMemoryStore } from "../support/memory-store.js";
import { PausingClock } from "../support/pausing-clock.js";
import { type Target, withHeaders } from "./target.js";

/** A target with all principals. */
export type WholeTarget = Target & Required<Pick<Target, "asAnother" | "asStranger" | "close" | "nowMs" | "pass" | "passing">>;

/** The principal that this gateway takes for a caller from another account. */
const STRANGER = "stranger";

/** Serves the API on a free port, or the function URL of this alias. */
export async function twoAccounts(alias?: string): Promise<WholeTarget> {
  const clock = new PausingClock(Date.now());
  const store = createMemoryStore({ policy: createPolicy(), clock });
  const handler = compose(
    { HOLDFAST_TENANT: "account", ...(alias !== undefined && { HOLDFAST_MOUNT: "function-url" }) },
    { store, clock, log: () => undefined },
  );
  const gateway = await startGateway({ handler: (event, invocation) => handler(fromItsAccount(event), invocation), alias, port: 0, clock });
  return {
    url: gateway.url,
    fetch,
    servesOperators: alias === undefined,
    asAnother: withHeaders({ "x-holdfast-principal": "another" }),
    asStranger: withHeaders({ "x-holdfast-principal": STRANGER }),
    nowMs: () => clock.wallMs(),
    pass: (ms) => clock.advance(ms),
    passing: async (reply) => (await clock.passUntil(reply)).answer,
    close: () => gateway.close(),
  };
}

function fromItsAccount(event: HttpEvent): HttpEvent {
  const { iam } = event.requestContext.authorizer as { readonly iam: { readonly userId: string } };
  if (iam.userId !== STRANGER) return event;
  return { ...event, requestContext: { ...event.requestContext, authorizer: { iam: { ...iam, accountId: "elsewhere" } } } };
}
