/**
 * One engine for a whole test run. vitest's globalSetup starts it, or takes the engine that `DYNAMODB_ENDPOINT` names,
 * and provides its endpoint. Every test then creates its own table on it.
 */
import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { randomUUID } from "node:crypto";
import { inject } from "vitest";
import type { TestProject } from "vitest/node";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import type { Engine } from "../../infra/local/engine.js";
import { startEngine } from "../../infra/local/engine.js";

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
  return { client: engineClient(endpoint, config), tableName, endpoint };
}
