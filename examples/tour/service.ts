/** The lock service of the tour, in a process of its own, so that the tour can kill it. It tells its URL when it serves, then each line of its log, and ends with its parent. */
import { startServicesInRegions } from "../../infra/local/local-regions.js";
import { startLocalService } from "../../infra/local/local-service.js";
import type { LogLine } from "../../lib/dynamodb.js";

/** Where it serves. */
export interface Address {
  /** 0 for any free port. */
  readonly port: number;
  readonly endpoint: string;
  readonly tableName: string;
  /** The Regions of a table in memory, with a service in each. @default one service on the table */
  readonly regions?: readonly string[];
}

const { port, endpoint, tableName, regions } = JSON.parse(process.argv[2] ?? "") as Address;
process.on("disconnect", () => process.exit());
const parts = {
  ports: [port],
  log: (line: LogLine): void => void process.send?.(line),
  onFailure: (error: unknown): void => console.error(error),
};
const services = regions
  ? await startServicesInRegions(regions, parts)
  : [await startLocalService({ ...parts, table: { endpoint, tableName } })];
process.send?.(services.map(({ url }) => url).join(","));
