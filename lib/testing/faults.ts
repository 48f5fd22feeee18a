/** Faults to inject between a client and its service: requests and responses that get lost. */
import { type Operation, wrapped } from "../core/api/call.js";
import type { ServiceApi } from "../core/api/runs.js";
import { NoResponse } from "../core/api/locks.js";

export type { Operation } from "../core/api/call.js";

/** Pending faults. Each happens once, in the order of the calls that added them. */
export class Faults {
  readonly #pending: { readonly kind: "request" | "response"; readonly operation: Operation | undefined }[] = [];

  /** Makes the next request (for `operation`, if given) get lost before the service receives it. */
  loseNextRequest(operation?: Operation): void {
    this.#pending.push({ kind: "request", operation });
  }

  /** Makes the next response (for `operation`, if given) get lost after the service carried out the request. */
  loseNextResponse(operation?: Operation): void {
    this.#pending.push({ kind: "response", operation });
  }

  /** Returns `api` with these faults in front of it. */
  inFrontOf(api: ServiceApi): ServiceApi {
    return wrapped(api, (next) => async (operation, request, options) => {
      const fault = this.#take(operation);
      if (fault === "request") throw new NoResponse(`${operation}: the request was lost`);
      const answer = await next(operation, request, options);
      if (fault === "response") throw new NoResponse(`${operation}: the answer was lost`);
      return answer;
    });
  }

  #take(operation: Operation): "request" | "response" | undefined {
    const at = this.#pending.findIndex((fault) => fault.operation === undefined || fault.operation === operation);
    return at < 0 ? undefined : this.#pending.splice(at, 1)[0]?.kind;
  }
}
