/**
 * Compares two ways to the records: each must know the caller by the same identity, and a lease of one way must be found on the other, or a
 * limit that only this client can have made. But for that one take, only reads are sent. While one of the ways is silent, the other's table
 * shows that both lead to it, by the list of its doors.
 */
import type { CallerIdentity, Health, LeaseRef } from "../../core/api/locks.js";
import type { ServiceApi } from "../../core/api/runs.js";
import type { Renewed, SetHeld } from "../../core/api/sets.js";
import type { Held } from "../../core/commands.js";
import type { LostReason, Refusal } from "../../core/errors.js";
import { bounded } from "../../core/key.js";
import { randomToken } from "../../core/random.js";
import { ratePerMinMs } from "../../core/request-limits.js";
import { errorOf, LockError } from "./errors.js";
import { type RetryBounds, type Runtime, retry } from "./retry.js";

/** The limits of a comparison's request. */
export type RequestLimits = Pick<RetryBounds, "attemptMs" | "budgetMs">;

/** The reason if leases of one way are unknown to the other. */
export const otherTable = (names: string): string => `${names} don't use the same table`;
/** The reason if nothing shows that they do. */
export const unproven = (names: string): string =>
  `nothing shows that ${names} use the same table; acquire a key or take from a limit, and try again`;

/** The knowledge that a way has of a lease; `unclear` if it would answer the same for a lease that it never saw. */
export type Knowledge = "known" | "unknown" | "unclear";

/**
 * The reasons that only a record of this very lease gives. `taken` and `expired` are none: a table that never saw the id answers so too, if
 * the id is below the key's low watermark, or over 15 min old (decision 040).
 */
const RECORDED: ReadonlySet<LostReason | undefined> = new Set(["released", "transferred", "broken"]);

/** Returns the error for two ways that can't replace each other. */
export function notConfigured(why: string): LockError {
  return new LockError(`failover: ${why}`, { code: "not-configured", definite: true, retry: "never" });
}

/** Returns the state of a way, which tells who the caller is there. @throws LockError for a refusal, or without an answer */
export async function stateAt(api: ServiceApi, limits: RequestLimits, runtime: Runtime): Promise<Health & { caller: CallerIdentity }> {
  const { answer } = await retry((attempt) => api.health({ caller: "1" }, attempt), limits, runtime);
  if (!answer.ok && answer.code !== "invalid-request") throw failure(answer, "failover: the service's view of this caller");
  const caller = answer.ok ? answer.caller : undefined;
  if (!answer.ok || !caller) throw notConfigured("the service is of a version that doesn't tell a caller its identity");
  return { ...answer, caller };
}

/** @throws LockError `not-configured` if the caller is another `at` one place than is expected, as it is at `other` */
export function checkIdentity(identity: CallerIdentity, expected: Partial<CallerIdentity>, at: string, other: string): void {
  const names = Object.keys(expected) as (keyof CallerIdentity)[];
  const name = names.find((one) => identity[one] !== expected[one]);
  if (name === undefined) return;
  throw notConfigured(`${name}: ${JSON.stringify(identity[name])} at ${at}, ${JSON.stringify(expected[name])} ${other}`);
}

/** True if a table's doors have `door`, or a URL that it begins with. */
export function hasDoor({ doors = [] }: Pick<Health, "doors">, door: string): boolean {
  const parts = (one: string): string => `${URL.canParse(one) ? new URL(one).href.replace(/\/+$/, "") : one}/`;
  return doors.some((listed) => parts(door).startsWith(parts(listed)));
}

/** @throws LockError `not-configured` unless the other way's table {@link hasDoor} */
export function checkDoors(answer: Health, door: string, other: string): void {
  if (hasDoor(answer, door)) return;
  throw notConfigured(
    `${door} doesn't answer, and ${other} is not used in its place, since the table there doesn't list it: do both use one table?`,
  );
}

/** Returns the error for a refusal. What was not reached may be there later. */
function failure(answer: Refusal, what: string): LockError {
  return errorOf(answer.unreached ? { ...answer, retry: "later" } : answer, what);
}

/** Returns what this way knows of the lease, held or ended. @throws LockError for any other refusal, or without an answer */
export async function lookUp(api: ServiceApi, ref: LeaseRef, limits: RequestLimits, runtime: Runtime): Promise<Knowledge> {
  const { answer } = await retry((attempt) => api.check(ref, attempt), limits, runtime);
  if (answer.ok) return "known";
  if (answer.code !== "lease-lost") throw failure(answer, `failover: ${ref.key} looked up on the other way`);
  if (RECORDED.has(answer.reason)) return "known";
  return answer.reason === "never" ? "unknown" : "unclear";
}

/**
 * Takes by one way from a limit of a name that nobody else has, and returns whether the other has it: if so, nobody else made it there.
 * Its name begins with that of a limit that this client uses, since a caller may be bound to a prefix. It is full at once, and collected later
 * (decision 064).
 * @throws LockError for a refusal, or without an answer
 */
export async function lookUpTake(
  one: ServiceApi,
  other: ServiceApi,
  limit: string,
  limits: RequestLimits,
  runtime: Runtime,
): Promise<Knowledge> {
  const key = bounded(`${limit}_${randomToken()}`);
  const request = { key, rates: [{ count: 1000, perMs: ratePerMinMs }] };
  const taken = (await retry((attempt) => one.take(request, attempt), limits, runtime)).answer;
  if (!taken.ok) throw failure(taken, `failover: a take from ${key}`);
  const { answer } = await retry((attempt) => other.limit({ key }, attempt), limits, runtime);
  if (answer.ok) return "known";
  if (answer.code !== "not-found") throw failure(answer, `failover: ${key} looked up on the other way`);
  return "unknown";
}

/** Returns a lease that the answer shows as held: that of a lock or of a run, or of one key of a set or of a batch. */
export function leaseIn(operation: keyof ServiceApi, kind: LeaseRef["kind"], answer: object): LeaseRef | undefined {
  const { lease, fencingTokens = {}, leaseId, results = [] } = answer as Partial<Held & SetHeld & Renewed>;
  if (lease) return { kind: operation === "start" ? "runs" : kind, key: lease.key, leaseId: lease.leaseId };
  const [key] = Object.keys(fencingTokens);
  if (key !== undefined && leaseId !== undefined) return { key, leaseId };
  const renewed = results.find(({ ok }) => ok);
  return renewed && leaseIn(operation, kind, renewed);
}
