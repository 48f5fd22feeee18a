/**
 * A service process: the real handler behind the local gateway, which has a clock of its own as API Gateway does. On
 * SIGUSR2 it reports its memory.
 */
import { writeSync } from "node:fs";
import { engineEnvironment } from "../../infra/local/engine-client.js";
import { startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { systemClock } from "../../lib/core/time.js";
import "../support/end-with-parent.js";

/** The service's instructions. */
export interface ServiceOrder {
  readonly endpoint: string;
  readonly tableName: string;
  /** The wall clock at the start of the machine's monotonic clock, in epoch ms: the gateway's clock doesn't jump. */
  readonly machineStartMs: number;
  /** The URL of this service, on a table of several Regions. @default a table of one Region */
  readonly ownUrl?: string;
  /** @default any free port */
  readonly port?: number;
}

const { endpoint, tableName, machineStartMs, ownUrl, port = 0 } = JSON.parse(process.argv[2] ?? "") as ServiceOrder;
const clock = { ...systemClock, wallMs: () => Math.floor(machineStartMs + Number(process.hrtime.bigint()) / 1e6) };
const inRegions = ownUrl !== undefined && { HOLDFAST_OWN_URL: ownUrl, HOLDFAST_REGIONS: "us-east-1,us-east-2" };
const handler = compose({ ...engineEnvironment(endpoint), ...inRegions, HOLDFAST_TABLE: tableName }, { log: () => undefined });
const { url } = await startGateway({ handler, port, clock });
let reports = 0;
process.on("SIGUSR2", () => writeSync(1, `${JSON.stringify({ event: `report ${++reports}`, rssBytes: process.memoryUsage().rss })}\n`));
writeSync(1, `${JSON.stringify({ event: "ready", url })}\n`);
