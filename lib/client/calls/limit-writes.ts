/**
 * The writes of a limit beside its takes. A charge is what a call used beyond its take. A shut lets nothing start for a time, whoever takes; of
 * the errors of work it knows those that say when to come back. Only a client that charges or shuts loads this file.
 */
import type { RateWithBurst } from "../../core/rate.js";
import * as LIMITS from "../../core/request-limits.js";
import { type Checks, CHECKS, checkOptions, ms } from "../wire/checks.js";
import type { Session } from "./session.js";

/** The time for which a limit is shut, and the reason. */
export interface ShutOptions {
  /** The time in which nothing starts, in ms, at most a day. */
  readonly forMs: number;
  /** The reason, for the service's log. */
  readonly reason: string;
}

const SHUT: Checks<ShutOptions> = { forMs: ms(1, LIMITS.takeWaitMaxMs), reason: CHECKS.reason };

/** A limit of a session. */
interface Limit {
  readonly session: Session;
  readonly key: string;
  readonly rates: readonly RateWithBurst[];
}

/** Charges the limit `cost`, by a take that nobody starts by: its wait is the longest, so it has room for what is owed. @throws as `Limiter.charge` */
export async function charge({ session, ...limit }: Limit, cost: number, timeoutMs?: number): Promise<void> {
  const request = { ...limit, cost, waitMs: LIMITS.takeWaitMaxMs };
  await session.carryOut(`charge ${limit.key}`, (call) => session.deps.api.take(request, call), { mostMs: timeoutMs, ofWork: true });
}

/** Shuts the limit. Resolves once every take that is sent afterwards is refused. @throws as `Limiter.shut` */
export async function shut({ session, key, rates }: Limit, options: ShutOptions, timeoutMs?: number): Promise<void> {
  checkOptions("shut", options, SHUT, "forMs", "reason");
  const { forMs, reason } = options;
  const ask: Parameters<typeof session.carryOut>[1] = (call) => session.deps.api.shutLimit({ key, rates, forMs, reason }, call);
  await session.carryOut(`shut ${key}`, ask, { mostMs: timeoutMs, ofWork: true });
}

/** The longest time for which the error of work waits for its shut, in ms. */
const AFTER_ERROR_MS = 3000;

/** Shuts the limit for as long as `error` says, if it says so. A shut that fails is left: the error of the work is what its caller is told. */
export async function shutAfter(limit: Limit, error: unknown): Promise<void> {
  const forMs = Math.min(retryAfterMsOf(error, limit.session.deps.clock.wallMs()), LIMITS.takeWaitMaxMs);
  if (forMs >= 1) await shut(limit, { forMs, reason: "Retry-After" }, AFTER_ERROR_MS).catch(() => undefined);
}

/** An error, or the response in it, that may have a `Retry-After`. */
interface Answered {
  readonly headers?: Partial<Record<string, unknown>> & { get?(name: string): unknown };
  readonly response?: unknown;
  readonly $response?: unknown;
  readonly cause?: unknown;
}

/** Returns the time of the `Retry-After` of an error, of its response or of its cause, in ms; 0 without one. It is a number of seconds or a date. */
function retryAfterMsOf(error: unknown, nowMs: number, depth = 0): number {
  if (typeof error !== "object" || error === null || depth > 3) return 0;
  const { headers, response, $response, cause } = error as Answered;
  const said = typeof headers?.get === "function" ? headers.get("retry-after") : (headers?.["retry-after"] ?? headers?.["Retry-After"]);
  const text = typeof said === "string" || typeof said === "number" ? String(said).trim() : "";
  const foundMs = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  if (foundMs > 0) return Math.ceil(foundMs);
  return [response, $response, cause].map((one) => retryAfterMsOf(one, nowMs, depth + 1)).find((one) => one > 0) ?? 0;
}
