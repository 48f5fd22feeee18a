/**
 * Chooses the DynamoDB engine of the local service:
 *
 * 1. an engine given by its address (DYNAMODB_ENDPOINT);
 * 2. dynoxide, a native engine that npm installs on linux-x64;
 * 3. elsewhere, AWS's DynamoDB Local, if Java is installed;
 * 4. none: the caller can keep its records in memory instead, and says so.
 *
 * On linux-x64, a missing engine is a broken installation and an error.
 */
import { ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { engineClient } from "./engine-client.js";
import { type EngineCommand, startProcess } from "./engine-process.js";
import { NoEngineHere, StartError } from "./start-error.js";

const { resolve } = createRequire(import.meta.url);

/** The engines that can be started here. */
export const EMBEDDED_ENGINES = ["dynoxide", "dynamodb-local"] as const;

/** An engine that this process starts and stops. */
export type EmbeddedEngine = (typeof EMBEDDED_ENGINES)[number];

/** The requested engine; empty: the engine that this machine has. */
export interface EngineChoice {
  /** The address of a running engine; takes precedence over `kind`. */
  readonly endpoint?: string | undefined;
  /** The only engine to start, without a fallback. */
  readonly kind?: EmbeddedEngine | undefined;
  /** The file in which dynoxide keeps its data, also after it stops. @default memory */
  readonly dataFile?: string | undefined;
}

/** A running DynamoDB engine. */
export interface Engine {
  readonly kind: EmbeddedEngine | "external";
  /** `http://host:port`. */
  readonly endpoint: string;
  /** The process group, for an engine that was started here. */
  readonly groupId?: number;
  /** Stops an engine that was started here and discards what it has in memory; leaves an external one alone. */
  stop(): Promise<void>;
}

/** The time limit for the answer of an external engine, in ms. */
const EXTERNAL_ANSWER_MS = 5_000;
/** The time limit for the start of a native program, in ms. It answers in a moment even on a loaded machine. */
const DYNOXIDE_START_MS = 15_000;
/** The time limit for the start of a Java program that is downloaded on its first start, in ms. */
const DYNAMODB_LOCAL_START_MS = 180_000;

/**
 * Starts or finds an engine.
 * @throws NoEngineHere if none was requested by name and this machine has none.
 * @throws StartError if the requested engine doesn't start or answer.
 */
export async function startEngine({ endpoint, kind, dataFile }: EngineChoice): Promise<Engine> {
  if (endpoint !== undefined) return externalEngine(endpoint);
  if (kind !== undefined) return embeddedEngine(kind, dataFile);
  if (process.platform === "linux" && process.arch === "x64") return embeddedEngine("dynoxide", dataFile);
  try {
    return await embeddedEngine("dynamodb-local");
  } catch (error) {
    throw error instanceof StartError ? new NoEngineHere(error.message) : error;
  }
}

async function embeddedEngine(kind: EmbeddedEngine, dataFile?: string): Promise<Engine> {
  const { port, groupId, stop } = await startProcess(kind === "dynoxide" ? dynoxide(dataFile) : dynamodbLocal());
  return { kind, endpoint: `http://127.0.0.1:${port}`, groupId, stop };
}

/** Returns the command for dynoxide, without streams, which would slow it down as records accumulate. */
function dynoxide(dataFile?: string): EngineCommand {
  const manifest = installed("@dynoxide/linux-x64/package.json");
  if (manifest === undefined) {
    throw new StartError(
      "The embedded engine @dynoxide/linux-x64 is not installed: run npm ci without --omit=optional, or set HOLDFAST_ENGINE=memory",
    );
  }
  const file = dataFile === undefined ? [] : ["--db-path", dataFile];
  const args = (port: number): readonly string[] => ["--host", "127.0.0.1", "--port", String(port), ...file];
  return { name: "dynoxide", command: join(dirname(manifest), "dynoxide"), args, startMs: DYNOXIDE_START_MS };
}

/** Returns the command for AWS's DynamoDB Local, which the package of that name downloads. A Node process launches it and ends with it. */
function dynamodbLocal(): EngineCommand {
  const launcher = installed("dynamodb-local");
  if (launcher === undefined) throw new StartError("AWS's DynamoDB Local (npm package dynamodb-local) is not installed");
  if (spawnSync("java", ["-version"]).status !== 0) throw new StartError("AWS's DynamoDB Local needs Java, and there is none on the path");
  const args = (port: number): readonly string[] => ["-e", LAUNCH_DYNAMODB_LOCAL, launcher, String(port)];
  return { name: "dynamodb-local", command: process.execPath, args, startMs: DYNAMODB_LOCAL_START_MS };
}

const LAUNCH_DYNAMODB_LOCAL = `
  const [, launcher, port] = process.argv;
  require(launcher).launch(Number(port), null, ["-sharedDb", "-disableTelemetry"]).catch((error) => {
    console.error(error.message);
    process.exit(1);
  });
`;

function installed(specifier: string): string | undefined {
  try {
    return resolve(specifier);
  } catch {
    return undefined;
  }
}

/** Connects once, so that a wrong address is reported at the start and not by the first request. */
async function externalEngine(endpoint: string): Promise<Engine> {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new StartError(`DYNAMODB_ENDPOINT is not a URL: ${endpoint} (it should look like http://127.0.0.1:8000)`);
  }
  const client = engineClient(endpoint, { maxAttempts: 1 });
  try {
    await client.send(new ListTablesCommand({ Limit: 1 }), { abortSignal: AbortSignal.timeout(EXTERNAL_ANSWER_MS) });
  } catch (error) {
    throw new StartError(`No DynamoDB answers at DYNAMODB_ENDPOINT ${endpoint}: ${reasonOf(error)}`, { cause: error });
  } finally {
    client.destroy();
  }
  return { kind: "external", endpoint, stop: async () => undefined };
}

/** Returns the reason in a few words: from the error code of Node, the status of the SDK, or the error's name. */
function reasonOf(error: unknown): string {
  const { code, name, message, $metadata } = error as {
    code?: string;
    name?: string;
    message?: string;
    $metadata?: { httpStatusCode?: number };
  };
  if (code === "ECONNREFUSED") return "nothing listens there";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "its host is not known";
  if (name === "AbortError" || name === "TimeoutError") return `no answer within ${EXTERNAL_ANSWER_MS / 1000} s`;
  if ($metadata?.httpStatusCode !== undefined) return `what answers there is not DynamoDB (HTTP ${$metadata.httpStatusCode})`;
  return code ?? (message ?? String(error)).split("\n", 1)[0] ?? "";
}
