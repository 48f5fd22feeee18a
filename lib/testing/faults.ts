/** Faults to inject between a client and its service: the messages that networks lose and repeat. */
import type { ServiceApi } from "../core/api/runs.js";
import { NoResponse } from "../core/api/locks.js";

/** An operation of the service. */
export type Operation = keyof ServiceApi;

/** Faults waiting for their operation; each happens once, in the order in which they were asked for. */
export class Faults {
  readonly #pending: { readonly kind: "request" | "response"; readonly operation: Operation | undefined }[] = [];

  /** The next request (for `operation`, if given) never arrives. */
  loseNextRequest(operation?: Operation): void {
    this.#pending.push({ kind: "request", operation });
  }

  /** The next request is carried out, and its answer is lost. */
  loseNextResponse(operation?: Operation): void {
    this.#pending.push({ kind: "response", operation });
  }

  /** `api` with these faults in front of it. */
  inFrontOf(api: ServiceApi): ServiceApi {
    const faulty = (operation: Operation) => async (request: never, options: never) => {
      const fault = this.#take(operation);
      if (fault === "request") throw new NoResponse(`${operation}: the request was lost`);
      const answer = await api[operation](request, options);
      if (fault === "response") throw new NoResponse(`${operation}: the answer was lost`);
      return answer;
    };
    return Object.fromEntries(
      (Object.keys(api) as Operation[]).map((operation) => [operation, faulty(operation)]),
    ) as unknown as ServiceApi;
  }

  #take(operation: Operation): "request" | "response" | undefined {
    const at = this.#pending.findIndex((fault) => fault.operation === undefined || fault.operation === operation);
    return at < 0 ? undefined : this.#pending.splice(at, 1)[0]?.kind;
  }
}
