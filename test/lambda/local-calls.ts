/** The requests that the tests over HTTP make often, to a service on loopback whose clock the test advances. */
import { type Calls, type Sender, callsOf } from "../e2e/calls.js";
import type { HttpService } from "../support/http-service.js";
import { leaseIdAt } from "../support/lease-ids.js";

/** Creates the calls of `service()`, whose keys begin with `prefix`. A start asks for nothing by itself. */
export function localCalls(service: () => HttpService, prefix: string): Calls<Sender> {
  let keys = 0;
  const sender: Sender = {
    freshKey: () => `${prefix}_${++keys}`,
    newId: (fromNowMs = 0) => leaseIdAt(service().clock.wallMs() + fromNowMs),
    send: (method, path, parts) => service().send(method, path, parts),
  };
  return callsOf(() => sender, {});
}
