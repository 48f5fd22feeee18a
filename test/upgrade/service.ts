/** A process that serves a version's bundle, as deployed, behind the local gateway. The handler's own lines are its reports too. */
import { writeSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type GatewayOptions, startGateway } from "../../infra/local/gateway.js";
import "../support/end-with-parent.js";

/** The service's instructions. Its environment is the function's. */
export interface ServiceOrder {
  /** The directory of the bundle. */
  readonly directory: string;
}

const { directory } = JSON.parse(process.argv[2] ?? "") as ServiceOrder;
const bundle = (await import(pathToFileURL(join(directory, "index.mjs")).href)) as Pick<GatewayOptions, "handler">;
const { url } = await startGateway({ handler: bundle.handler, port: 0 });
writeSync(1, `${JSON.stringify({ event: "ready", url })}\n`);
