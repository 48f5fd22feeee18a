/** The log of a deployed service in CloudWatch Logs, as `holdfast ui` reads it with the caller's own credentials. */
import { CliError } from "../cli-error.js";
import type { ConnectionOptions } from "../connection.js";
import { signer, signingRegion } from "../connection.js";
import type { DeployedLog } from "./face.js";
import { linesOfRows } from "./insights-query.js";
import { runQuery } from "./insights.js";

/**
 * Returns the log in `logGroup`. Its region is the given one, the environment's, or that of the API's host.
 * @throws CliError if there is no region, no credentials, or a package for signing is missing
 */
export async function deployedLog(logGroup: string, options: ConnectionOptions, env: NodeJS.ProcessEnv): Promise<DeployedLog> {
  const url = options.url ?? (env["HOLDFAST_URL"] || undefined);
  const ofHost = url === undefined ? undefined : signingRegion(new URL(url), {});
  const region = [options.region, env["AWS_REGION"], env["AWS_DEFAULT_REGION"], ofHost].find(Boolean);
  if (region === undefined)
    throw new CliError("config", "--log-group: the region of the log is not known", { next: "Pass --region or set AWS_REGION." });
  const domain = region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  const endpoint = (env["AWS_ENDPOINT_URL_CLOUDWATCH_LOGS"] || undefined) ?? `https://logs.${region}.${domain}/`;
  const sign = await signer(region, endpoint, "logs");
  return {
    logGroup,
    async linesOf(key, query, sinceMs) {
      const toMs = Date.now();
      return linesOfRows(await runQuery(query, { fromMs: toMs - sinceMs, toMs }, { logGroup, endpoint, sign }), key);
    },
  };
}
