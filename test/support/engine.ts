/**
 * One engine for a whole test run. vitest's globalSetup starts it, or takes the engine that `DYNAMODB_ENDPOINT` names,
 * and provides its endpoint. Every test then creates its own table on it.
 */
import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { randomUUID } from "node:crypto";
import { inject } from "vitest";
import type { TestProject } from "vitest/node";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient, engineEnvironment, engineLocation } from "../../infra/local/engine-client.js";
import { type Engine, startEngine } from "../../infra/local/engine.js";
import { systemClock } from "../../lib/core/time.js";
import { builtInCalls } from "../../lib/store/dynamo/built-in-calls.js";
import type { AllCalls, TableCalls } from "../../lib/store/dynamo/calls.js";
import { environmentSettings } from "../../lib/store/dynamo/environment-settings.js";
import { standardRetries } from "../../lib/store/dynamo/retries.js";
import { sdkCalls } from "./sdk-calls.js";
import { TABLE_CALLS } from "../../lib/store/dynamo/http-sender.js";

declare module "vitest" {
  /** The values that globalSetup provides to the tests. */
  export interface ProvidedContext {
    engineKind: Engine["kind"];
    engineEndpoint: string;
    /** True with `-u`. */
    isRecording: boolean;
  }
}

/** vitest's globalSetup. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Inherited by the workers and their child processes: tests don't need the SDK's warning about Node versions.
  process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";
  const named = process.env["DYNAMODB_ENDPOINT"];
  const engine = await startEngine({ endpoint: named === "" ? undefined : named });
  project.provide("engineKind", engine.kind);
  project.provide("engineEndpoint", engine.endpoint);
  project.provide("isRecording", project.vitest.snapshot.options.updateSnapshot === "all");
  project.vitest.logger.log(`engine: ${engine.kind === "external" ? engine.endpoint : engine.kind}`);
  return () => engine.stop();
}

/** A test's own table. */
export interface FreshTable {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly endpoint: string;
  /** The operations of a store, past the SDK's client. */
  readonly calls: TableCalls;
  /** The options of a lock client on the table. */
  readonly place: { readonly tableName: string } & ReturnType<typeof engineLocation>;
  /** The environment of a function on the table. */
  readonly env: Readonly<Record<string, string>>;
}

/** So long that an engine under load answers in time. */
const ANSWER_MS = 10_000;

/** Returns operations past the SDK's client, of a process of its own: one that retries often stops retrying. */
export function engineCalls(endpoint: string, maxAttempts: number = TABLE_CALLS.maxAttempts, answerMs = ANSWER_MS): AllCalls {
  const deps = { clock: systemClock, random: Math.random };
  const settings = environmentSettings(engineEnvironment(endpoint), deps);
  if (typeof settings === "string") throw new Error(settings);
  const retries = standardRetries(maxAttempts, deps);
  return builtInCalls({ ...settings, retries: async () => retries, bounds: { connectMs: ANSWER_MS, answerMs } });
}

/** Returns the table with operations through its client, and so through what a test adds to the client. */
export function throughSdk<T extends Pick<FreshTable, "client">>(table: T): T & Pick<FreshTable, "calls"> {
  return { ...table, calls: sdkCalls(table.client) };
}

/**
 * Creates a table with a unique name, and a client for it. Given the address of a proxy in front of the engine, the
 * table is created directly and the client goes through the proxy.
 */
export async function freshTable(endpoint = inject("engineEndpoint"), config: DynamoDBClientConfig = {}): Promise<FreshTable> {
  const tableName = `test-${randomUUID()}`;
  const direct = engineClient(inject("engineEndpoint"));
  await createTable(direct, tableName);
  direct.destroy();
  return {
    client: engineClient(endpoint, config),
    tableName,
    endpoint,
    calls: engineCalls(endpoint),
    place: { tableName, ...engineLocation(endpoint) },
    env: { HOLDFAST_TABLE: tableName, ...engineEnvironment(endpoint) },
  };
}
