/** `holdfast dev`: serves the API on this machine, for development and for a project's own tests. It checks nobody's identity. */
import type { Gateway } from "../../infra/local/gateway.js";
import { type LocalTable, startLocalService } from "../../infra/local/local-service.js";
import { type RegionalService, REGION_PATH, startServicesInRegions } from "../../infra/local/local-regions.js";
import { StartError } from "../../infra/local/start-error.js";
import type { LogLine } from "../../lib/dynamodb.js";
import { createLockClient } from "../../lib/index.js";
import { CliError } from "../cli-error.js";
import { needing, silenceNodeWarning, TABLE_PACKAGES } from "../connection.js";
import { RecentLines } from "../../console/recent-lines.js";
import { CONSOLE_PATH, consoleOf } from "../../console/server.js";
import type { ProcessContext } from "../context.js";
import { NO_LEASE, statusOf, supervise } from "../exec/supervise.js";
import { formatDuration } from "../../console/text/duration.js";
import { statusOfSignal } from "../exit-codes.js";
import { plainJson } from "../../console/text/plain-text.js";
import { PLAIN } from "../terminal.js";
import { logText } from "./log-text.js";
import { plant, readSeed } from "./seed.js";

/** The address, the storage, and the command to run. */
export interface DevArgs {
  /** The ports to try in this order; 0 is any free one. */
  readonly ports: readonly number[];
  /** @default memory */
  readonly table: LocalTable | "like-dynamodb" | undefined;
  readonly seedFile: string | undefined;
  /** Names of this machine that requests may come by, besides those of the loopback interface. */
  readonly allowedHosts: readonly string[];
  /** The Regions of a table in memory, each with a service of its own. @default none: one service */
  readonly regions?: readonly string[] | undefined;
  /** The time by which the service's clock is ahead, in ms. */
  readonly clockSkewMs?: number | undefined;
  /** True to log on stderr while a command runs. */
  readonly verbose: boolean;
  /** Empty: serve until a signal. */
  readonly command: readonly string[];
}

/** A service that is running; with its Region, if it is one of several. */
type Serving = Gateway & Partial<Pick<RegionalService, "region">>;

const SEED_OWNER = "seed";
/** The interval of the console's polls, in ms: on one machine they cost nothing. */
const CONSOLE_POLL_MS = 1000;
/** The time that a command has to end when this process is killed, in ms. */
const KILL_AFTER_MS = 5000;

/** Serves until the command ends, or a signal comes. Returns the exit status. @throws CliError if it can't serve */
export async function dev(args: DevArgs, context: ProcessContext): Promise<number> {
  const { ports, table, regions, seedFile, allowedHosts, clockSkewMs, command } = args;
  const seed = seedFile === undefined ? undefined : await readSeed(seedFile);
  const onFailure = (error: unknown): void => context.say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  if (typeof table === "object") silenceNodeWarning();
  const print = logFor(args, context);
  const lines = new RecentLines(Date.now());
  let isReady = false; // The seed is not logged: it is there before anybody looks.
  const log = (line: LogLine): void => {
    if (isReady) print(line);
    lines.add(line);
  };
  const start = async (): Promise<readonly Serving[]> =>
    regions
      ? startServicesInRegions(regions, { ports, allowedHosts, log, onFailure })
      : [await startLocalService({ ports, table, allowedHosts, clockSkewMs, wakesAt: context.env, log, onFailure })];
  const services = await needing(start, TABLE_PACKAGES, "--endpoint: this").catch((error: unknown) => {
    throw inOptions(error);
  });
  const clients = services.map(({ url }) => createLockClient({ url, owner: SEED_OWNER, retryReads: false }));
  for (const [index, service] of services.entries()) {
    const locks = clients[index];
    if (locks) service.mount(consoleOf({ locks, where: new URL(service.url).host, canChange: true, pollMs: CONSOLE_POLL_MS, lines }));
  }
  const url = services.map((service) => service.url).join(",");
  const [seeding] = clients;
  try {
    if (seed && seeding && seedFile !== undefined) await plant(seedFile, seed, seeding);
    isReady = true;
    if (command.length > 0) return await runBeside(url, command, context);
    const ended = new Promise<NodeJS.Signals>((resolve) => context.signals.handTo(resolve));
    const ready = {
      event: "ready",
      url,
      pid: process.pid,
      version: context.version,
      locks: table ?? "memory",
      ...(regions && { regions }),
    };
    await context.print(context.asJson ? `${JSON.stringify(ready)}\n` : greeting(services, args, context));
    return statusOfSignal(await ended);
  } finally {
    // Not awaited: a signal ends it at once, and without one the process ends when both are done.
    void Promise.all(clients.map((client) => client.close())).finally(() => Promise.all(services.map((service) => service.close())));
  }
}

/** Returns what receives the log's lines. The output of a command stays the command's. */
function logFor({ command, verbose }: DevArgs, { asJson, print, say, screen }: ProcessContext): (line: LogLine) => void {
  if (command.length > 0) return verbose ? (line) => say(logText(line, PLAIN)) : () => undefined;
  return (line) => void print(`${asJson ? plainJson(line) : logText(line, screen)}\n`);
}

/** Runs the command with the service's URL in its environment, and returns its status. */
async function runBeside(url: string, command: readonly string[], { env, signals }: ProcessContext): Promise<number> {
  const { HOLDFAST_TABLE: _none, ...others } = env;
  const work = { command, env: { ...others, HOLDFAST_URL: url }, killAfterMs: KILL_AFTER_MS };
  return statusOf(await supervise(work, NO_LEASE, signals));
}

function greeting(services: readonly Serving[], { table, ports, clockSkewMs }: DevArgs, { version, screen }: ProcessContext): string {
  const { bold } = screen.colors;
  const [first = 0] = ports;
  const [service, ...others] = services;
  const { url = "", port = 0 } = service ?? {};
  const taken = first !== 0 && port !== first ? `; port ${first} is in use` : "";
  const rows = [
    [`holdfast ${version}`, `${bold(url)}  (this machine only, no authentication${taken})`],
    ["Locks", placeOf(table)],
    ...services.flatMap((one) => (one.region === undefined ? [] : [[one.region, `${one.url}  (console: ${one.url}${CONSOLE_PATH})`]])),
    ...(clockSkewMs === undefined ? [] : [["Clock", `${formatDuration(clockSkewMs)} ahead of the gateway's`]]),
    ...(others.length === 0
      ? [["Console", `${url}${CONSOLE_PATH}`]]
      : [["Cut off", `curl -X POST "${url}${REGION_PATH}?state=silent"  (back: open)`]]),
    ["Set", `export HOLDFAST_URL=${services.map((one) => one.url).join(",")}`],
    ["Try", "npx holdfast lock demo -- sleep 5"],
  ];
  const width = Math.max(...rows.map(([name = ""]) => name.length)) + 2;
  return `${rows.map(([name = "", text = ""]) => name.padEnd(width) + text).join("\n")}\n\nPress Ctrl-C to stop. Lock activity:\n`;
}

function placeOf(table: DevArgs["table"]): string {
  if (typeof table === "object") return `table ${table.tableName} at ${table.endpoint}`;
  return table ? "in memory, with DynamoDB's latency, units and throttles" : "in memory: gone when this ends";
}

function inOptions(error: unknown): unknown {
  if (!(error instanceof StartError)) return error;
  const message = error.message
    .replaceAll("DYNAMODB_ENDPOINT", "--endpoint")
    .replace("HOLDFAST_ALLOWED_HOSTS=", "--allow-host ")
    .replace(/PORT=0/, "--port 0")
    .replace(/\bPORT\b/, "--port");
  return new CliError("config", message);
}
