/** The lock service of the tour, in a process of its own, so that the tour can kill it. It tells its URL when it serves, then each line of its log, and ends with its parent. */
import { startLocalService } from "../../infra/local/local-service.js";

/** Where it serves. */
export interface Address {
  /** 0 for any free port. */
  readonly port: number;
  readonly endpoint: string;
  readonly tableName: string;
}

const { port, endpoint, tableName } = JSON.parse(process.argv[2] ?? "") as Address;
process.on("disconnect", () => process.exit());
const { url } = await startLocalService({
  ports: [port],
  table: { endpoint, tableName },
  log: (line) => process.send?.(line),
  onFailure: (error) => console.error(error),
});
process.send?.(url);
