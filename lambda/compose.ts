/** Puts a deployed function together from its environment, which it is handed. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { LockRules } from "../lib/core/record.js";
import { createRules } from "../lib/core/rules.js";
import { systemClock } from "../lib/core/time.js";
import type { LogLine } from "../lib/service/log.js";
import { createDynamoStore } from "../lib/store/dynamo-store.js";
import type { LockStore } from "../lib/store/lock-store.js";
import { TABLE_CALLS } from "../lib/store/table.js";
import type { HandlerDeps } from "./handler.js";
import { createHandler } from "./handler.js";

/** The environment of a function. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A handler for `env`: `HOLDFAST_TABLE` names the table, `HOLDFAST_RETENTION_MS` and
 * `HOLDFAST_CLOCK_ERROR_MS` turn the rules, `HOLDFAST_LOG_REFUSALS` (0 to 1) samples refusals in the log.
 * @throws Error naming the variable that is missing or wrong, when the function starts.
 */
export function compose(
  env: Environment,
  { client, store, log = write, ...deps }: Partial<HandlerDeps> & { readonly client?: DynamoDBClient } = {},
): ReturnType<typeof createHandler> {
  const rules = rulesOf(env);
  const sampled = number(env, "HOLDFAST_LOG_REFUSALS") ?? 1;
  const onTable = (): LockStore =>
    createDynamoStore({
      client: client ?? new DynamoDBClient(TABLE_CALLS),
      tableName: required(env, "HOLDFAST_TABLE"),
      rules,
      clock: systemClock,
      random: Math.random,
    });
  return createHandler({
    store: store ?? onTable(),
    clock: systemClock,
    onFailure: (error, requestId) =>
      write({ event: "failed", requestId, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    ...deps,
    log: (line) => void ((line.event !== "refused" || Math.random() < sampled) && log(line)),
  });
}

/** The rules that `env` turns. @throws Error naming the variable that is wrong. */
export function rulesOf(env: Environment): LockRules {
  return createRules({
    ...optional(env, "HOLDFAST_RETENTION_MS", "retentionMs"),
    ...optional(env, "HOLDFAST_CLOCK_ERROR_MS", "clockErrorMs"),
  });
}

function write(line: LogLine | { readonly event: "failed"; readonly requestId: string; readonly error: string }): void {
  console.log(JSON.stringify(line));
}

function required(env: Environment, name: string): string {
  const value = env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

function number(env: Environment, name: string): number | undefined {
  const value = env[name];
  if (value === undefined || value === "") return undefined;
  if (!Number.isFinite(Number(value))) throw new Error(`${name}: ${JSON.stringify(value)} is not a number`);
  return Number(value);
}

function optional<K extends string>(env: Environment, name: string, option: K): Partial<Record<K, number>> {
  const value = number(env, name);
  return (value === undefined ? {} : { [option]: value }) as Partial<Record<K, number>>;
}
