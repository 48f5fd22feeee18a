/**
 * `npm start`: the whole service on localhost. It runs the real handler behind a local gateway, on an embedded DynamoDB, an external one
 * (`DYNAMODB_ENDPOINT`), memory (`HOLDFAST_ENGINE=memory`) or a table in memory that is served like DynamoDB (`like-dynamodb`). A start error
 * is one line on stderr; Ctrl-C ends everything.
 */
import { randomBytes } from "node:crypto";
import { RecentLines } from "../../console/recent-lines.js";
import { consoleOf, CONSOLE_PATH } from "../../console/server.js";
import { whenParentEnds } from "./parent.js";
import { plainJson } from "../../console/text/plain-text.js";
import { composeAgent } from "../../lambda/agent.js";
import { compose, metricPrefixesOf, policyOf, tenancyOf } from "../../lambda/compose.js";
import { printed } from "../../lambda/printed.js";
import { createLockClient } from "../../lib/index.js";
import { leaseIdFrom } from "../../lib/core/lease-id.js";
import { systemClock } from "../../lib/core/time.js";
import { VERSION } from "../../lib/core/version.js";
import { SHARED_NAMESPACE } from "../../lib/service/caller.js";
import type { Log } from "../../lib/service/log.js";
import { createMemorySleepers } from "../../lib/testing/memory-sleepers.js";
import { createStoreInMemory } from "../../lib/testing/served-table.js";
import { createTable } from "./create-table.js";
import { engineClient, engineEnvironment } from "./engine-client.js";
import { type EmbeddedEngine, type Engine, EMBEDDED_ENGINES, startEngine } from "./engine.js";
import { type GatewayOptions, startGateway } from "./gateway.js";
import { agentEnvironment, sweepInMemory, withAgent } from "./local-agent.js";
import { NoEngineHere, StartError } from "./start-error.js";

const DEFAULT_PORT = 8787;
const DEFAULT_TABLE = "holdfast";
const ENGINE_NAMES: readonly string[] = [...EMBEDDED_ENGINES, "memory", "like-dynamodb"];
/** The lease in the examples, in ms: long enough to paste the next command. */
const EXAMPLE_LEASE_MS = 120_000;
/** The interval of the console's polls, in ms: on one machine they cost nothing. */
const CONSOLE_POLL_MS = 1000;

// This project supports Node 20; suppress the SDK's warning that it will drop it.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";

/** The handler behind the gateway, and a description of its storage. */
interface Service {
  readonly handler: GatewayOptions["handler"];
  /** The sweep of an agent that wakes sleepers, if there is one. */
  readonly sweep?: (() => Promise<unknown>) | undefined;
  readonly runsOn: string;
  readonly engine?: Engine;
}

async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const port = portOf(env["PORT"]);
  let close = (): Promise<void> => Promise.resolve();
  endWhenAsked(env, () => close());

  const lines = new RecentLines(systemClock.wallMs());
  const { handler: served, sweep, runsOn, engine } = await startService(env, keptBy(lines, env));
  const complain = (error: unknown): void => console.error(firstLine(error));
  const agent = sweep && withAgent(served, sweep, complain);
  try {
    const allowedHosts = given(env["HOLDFAST_ALLOWED_HOSTS"])?.split(",");
    const gateway = await startGateway({ handler: agent?.handler ?? served, port, allowedHosts, onError: complain });
    const locks = createLockClient({ url: gateway.url, owner: "console", retryReads: false });
    gateway.mount(consoleOf({ locks, where: new URL(gateway.url).host, canChange: true, pollMs: CONSOLE_POLL_MS, lines }));
    close = async () => {
      agent?.stop();
      await gateway.close();
      await engine?.stop();
    };
    console.log(greeting(gateway.url, runsOn, namespaceOf(env)));
  } catch (error) {
    await engine?.stop();
    throw error;
  }
}

/**
 * Makes Ctrl-C, SIGTERM and the end of npm end everything, once: under npm a Ctrl-C comes from the terminal and from npm. Otherwise the port
 * would stay taken.
 */
function endWhenAsked(env: NodeJS.ProcessEnv, close: () => Promise<void>): void {
  let ending: Promise<void> | undefined;
  const end = (): void => void (ending ??= close().finally(() => process.exit(0)));
  process.on("SIGINT", end);
  process.on("SIGTERM", end);
  if (env["npm_lifecycle_event"] !== undefined) whenParentEnds(end);
}

/** Returns the log: it prints each line, as a deployed function does, and keeps it for the console. */
function keptBy(lines: RecentLines, env: NodeJS.ProcessEnv): Log {
  const prefixes = metricPrefixesOf(env);
  return (line) => {
    lines.add(line);
    process.stdout.write(`${plainJson(printed(line, prefixes))}\n`);
  };
}

async function startService(env: NodeJS.ProcessEnv, log: Log): Promise<Service> {
  const choice = given(env["HOLDFAST_ENGINE"]);
  if (choice !== undefined && !ENGINE_NAMES.includes(choice)) {
    throw new StartError(`HOLDFAST_ENGINE=${choice} is not an engine: it may be ${ENGINE_NAMES.join(", ")}`);
  }
  if (choice === "memory") return inMemory(env, "memory", log);
  if (choice === "like-dynamodb") return inMemory(env, "memory, with DynamoDB's latency, units and throttles", log, true);
  try {
    const engine = await startEngine({ endpoint: given(env["DYNAMODB_ENDPOINT"]), kind: choice as EmbeddedEngine | undefined });
    return await onEngine(env, engine, log);
  } catch (error) {
    if (error instanceof NoEngineHere) return inMemory(env, `memory, for want of an engine: ${error.message}`, log);
    throw error;
  }
}

function inMemory(env: NodeJS.ProcessEnv, runsOn: string, log: Log, likeDynamodb = false): Service {
  const records = { store: createStoreInMemory({ policy: policyOf(env), likeDynamodb }), sleepers: createMemorySleepers() };
  const agentEnv = agentEnvironment(env);
  if (!agentEnv) return { handler: compose(env, { store: records.store, log }), runsOn };
  const sweep = sweepInMemory(records, agentEnv, log, (error) => console.error(firstLine(error)));
  return { handler: compose(env, { ...records, log }), sweep, runsOn };
}

async function onEngine(env: NodeJS.ProcessEnv, engine: Engine, log: Log): Promise<Service> {
  const tableName = given(env["HOLDFAST_TABLE"]) ?? DEFAULT_TABLE;
  try {
    await createTable(engineClient(engine.endpoint), tableName);
    // Without the developer's own AWS variables, which may name a profile.
    const own = Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith("HOLDFAST_")));
    const agentEnv = agentEnvironment(env);
    const onTable = { ...own, ...agentEnv, ...engineEnvironment(engine.endpoint), HOLDFAST_TABLE: tableName };
    const handler = compose({ ...onTable, ...(agentEnv && { HOLDFAST_WAKE: "1" }) }, { log });
    const onFailure = (error: unknown): void => console.error(firstLine(error));
    const sweep = agentEnv && composeAgent(onTable, { log, onFailure, print: () => undefined });
    const kind = engine.kind === "external" ? "your own DynamoDB" : engine.kind;
    return { handler, sweep, engine, runsOn: `${kind} at ${engine.endpoint}, table ${tableName}` };
  } catch (error) {
    await engine.stop();
    throw error;
  }
}

/** Treats an empty variable as unset. */
function given(variable: string | undefined): string | undefined {
  return variable === "" ? undefined : variable;
}

function portOf(variable: string | undefined): number {
  const text = given(variable);
  if (text === undefined) return DEFAULT_PORT;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new StartError(`PORT=${text} is not a port: it may be 0 (any free one) to 65535`);
  return port;
}

/** Returns the common namespace, or a description of the tenants' namespaces. */
function namespaceOf(env: NodeJS.ProcessEnv): string {
  return tenancyOf(env) === undefined ? SHARED_NAMESPACE : `one for each tenant (HOLDFAST_TENANT=${env["HOLDFAST_TENANT"]})`;
}

function greeting(url: string, runsOn: string, namespace: string): string {
  const key = `${url}/v1/locks/ORDER_1231`;
  const lease = `${key}/leases/${leaseIdFrom(systemClock.wallMs(), randomBytes(10))}`;
  const body = JSON.stringify({ owner: "me", leaseMs: EXAMPLE_LEASE_MS });
  return [
    `holdfast ${VERSION} serves ${url}`,
    `engine: ${runsOn}`,
    `namespace: ${namespace}`,
    `console: ${url}${CONSOLE_PATH}`,
    "",
    "Acquire a lock, see who holds it, release it:",
    "",
    `  curl -i -X PUT ${lease} -H 'content-type: application/json' -d '${body}'`,
    `  curl -i ${key}`,
    `  curl -i -X DELETE ${lease}`,
    "",
    "Ctrl-C ends it.",
  ].join("\n");
}

function firstLine(error: unknown): string {
  return `holdfast: ${(error instanceof Error ? error.message : String(error)).split("\n", 1)[0]}`;
}

try {
  await main(process.env);
} catch (error) {
  console.error(firstLine(error));
  process.exitCode = 1;
}
