/**
 * The network between a client and its service, under the test's control: slow, lost or repeated messages, scripted
 * responses, and a record of every request.
 */
import type { Refusal } from "../../lib/core/errors.js";
import type { LeaseRef } from "../../lib/core/api/locks.js";
import { type AnswerOf, type Call, wrapped } from "../../lib/core/api/call.js";
import type { ServiceApi } from "../../lib/core/api/runs.js";
import { NoResponse } from "../../lib/core/api/locks.js";
import type { Clock } from "../../lib/core/time.js";
import type { Operation } from "../../lib/testing.js";

/** The fate of one request and its response. */
export interface Fate {
  /** The latency of the request, and then of the response. */
  readonly requestMs?: number;
  readonly replyMs?: number;
  /** `request`: it never arrives; `reply`: it is carried out, but the client gets no response. */
  readonly lost?: "request" | "reply";
  /** Lost without a sign, instead of with a broken connection. */
  readonly silently?: boolean;
  /** Lost with a kept connection that the service had closed. */
  readonly stale?: boolean;
  /** This response instead of carrying the request out. */
  readonly instead?: Refusal;
}

/** A request at the time of its sending. */
export interface Sent {
  readonly operation: Operation;
  readonly request: Partial<LeaseRef> & { readonly leaseMs?: number };
  readonly atMs: number;
}

/** The wire, with its controls. */
export interface Wire {
  readonly api: ServiceApi;
  readonly sent: readonly Sent[];
  /** The requests sent for `operation`, in order. */
  of(operation: Operation): readonly Sent[];
  /** The next requests of `operation` get these fates, in this order; later ones are undisturbed. */
  next(operation: Operation, ...fates: readonly Fate[]): void;
  /** Every request of `operation` gets this fate. Undefined removes it. */
  always(operation: Operation, fate: Fate | undefined): void;
  /** Called when a request leaves the client. */
  onSend: (sent: Sent) => void;
}

/** A wire in front of `api`. */
export function createWire(api: ServiceApi, clock: Clock): Wire {
  const sent: Sent[] = [];
  const planned = new Map<Operation, Fate[]>();
  const standing = new Map<Operation, Fate>();
  const passes = (delayMs = 0): Promise<void> | undefined =>
    delayMs > 0 ? new Promise((resolve) => clock.after(delayMs, resolve)) : undefined;
  const wire: Wire = {
    api: wrapped(api, throughWire),
    sent,
    of: (operation) => sent.filter((one) => one.operation === operation),
    next: (operation, ...fates) => void planned.set(operation, [...(planned.get(operation) ?? []), ...fates]),
    always: (operation, fate) => void (fate ? standing.set(operation, fate) : standing.delete(operation)),
    onSend: () => undefined,
  };
  return wire;

  function throughWire(carryOut: Call): Call {
    return async (operation, request, options) => {
      const one: Sent = { operation, request: request as Sent["request"], atMs: clock.monotonicMs() };
      sent.push(one);
      wire.onSend(one);
      const { requestMs, replyMs, lost, silently, stale, instead } = planned.get(operation)?.shift() ?? standing.get(operation) ?? {};
      await passes(requestMs);
      if (lost === "request") return noAnswer(operation, silently, stale);
      const answer = (instead as AnswerOf<typeof operation> | undefined) ?? (await carryOut(operation, request, options));
      await passes(replyMs);
      return lost === "reply" ? noAnswer(operation, silently, stale) : answer;
    };
  }
}

function noAnswer(operation: Operation, silently = false, isStale = false): Promise<never> {
  return silently ? new Promise(() => undefined) : Promise.reject(new NoResponse(`${operation}: the connection broke`, { isStale }));
}
