/**
 * The log of a deployed service in CloudWatch Logs, as `holdfast ui` and `history` read it with the caller's own credentials: a query of Logs Insights is
 * two calls of its JSON API, signed as any request to AWS, so no package of AWS's for it is needed. CloudWatch charges for each query, so it
 * runs only on demand. It has not been run on AWS.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Sign } from "../lib/index.js";
import { CliError } from "./cli-error.js";
import { type ConnectionOptions, signer, signingRegion } from "./connection.js";
import type { DeployedLog } from "../console/handlers.js";
import { type Row, linesOfRows } from "../console/insights-query.js";

/** The log, and how it is reached. */
export interface InsightsOptions {
  readonly logGroup: string;
  /** The address of CloudWatch Logs. */
  readonly endpoint: string;
  readonly sign: Sign;
  /** Waits. @default the process's timers */
  readonly wait?: (ms: number) => Promise<unknown>;
  /** Sends requests. @default the global `fetch` */
  readonly fetch?: typeof fetch;
}

/** The pause between two looks at a running query, in ms, and the largest number of looks. */
const PAUSE_MS = 500;
const LOOKS = 60;
const DAY_MS = 86_400_000;
/** The longest time for one call, in ms. */
const CALL_MS = 10_000;

/** Returns the log group that is given by `--log-group` or by the environment; undefined if none is. */
export function logGroupOf({ logGroup }: { readonly logGroup?: string | undefined }, env: NodeJS.ProcessEnv): string | undefined {
  return logGroup ?? (env["HOLDFAST_LOG_GROUP"] || undefined);
}

/**
 * Returns how the log in `logGroup` is reached. Its region is the given one, the environment's, or that of the API's host.
 * @throws CliError if there is no region, no credentials, or a package for signing is missing
 */
export async function insightsOn(logGroup: string, options: ConnectionOptions, env: NodeJS.ProcessEnv): Promise<InsightsOptions> {
  const url = options.url ?? (env["HOLDFAST_URL"] || undefined);
  const [nearest] = url?.split(",") ?? [];
  const ofHost = nearest === undefined ? undefined : signingRegion(new URL(nearest), {});
  const region = [options.region, env["AWS_REGION"], env["AWS_DEFAULT_REGION"], ofHost].find(Boolean);
  if (region === undefined)
    throw new CliError("config", "--log-group: the region of the log is not known", { next: "Pass --region or set AWS_REGION." });
  const domain = region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  const endpoint = env["AWS_ENDPOINT_URL_CLOUDWATCH_LOGS"] || env["AWS_ENDPOINT_URL"] || `https://logs.${region}.${domain}/`;
  return { logGroup, endpoint, sign: await signer(region, endpoint, "logs") };
}

/** Returns the log for the console. @throws CliError as {@link insightsOn} */
export async function deployedLog(logGroup: string, options: ConnectionOptions, env: NodeJS.ProcessEnv): Promise<DeployedLog> {
  const insights = await insightsOn(logGroup, options, env);
  return {
    logGroup,
    async linesOf(key, query, sinceMs) {
      const toMs = Date.now();
      return linesOfRows(await runQuery(query, { fromMs: toMs - sinceMs, toMs }, insights), key);
    },
  };
}

/** A time, in epoch ms. */
type TimeSpan = Readonly<Record<"fromMs" | "toMs", number>>;

/** Runs `query` over a time and returns its rows. @throws Error with CloudWatch's own words if it refuses, or if the query doesn't end within about 30 s */
export async function runQuery(query: string, { fromMs, toMs }: TimeSpan, options: InsightsOptions): Promise<readonly Row[]> {
  const { logGroup, wait = delay } = options;
  const { queryId } = await call<{ readonly queryId: string }>("StartQuery", options, {
    logGroupName: logGroup,
    startTime: Math.floor(fromMs / 1000),
    endTime: Math.ceil(toMs / 1000),
    queryString: query,
  });
  for (let look = 0; look < LOOKS; look++) {
    const { status, results = [] } = await call<QueryResults>("GetQueryResults", options, { queryId });
    if (status === "Complete") return results.map((fields) => Object.fromEntries(fields.map(({ field, value }) => [field, value])));
    if (status !== "Running" && status !== "Scheduled") throw new Error(`the query ended as ${status}`);
    await wait(PAUSE_MS);
  }
  throw new Error(`the query did not end within ${(LOOKS * PAUSE_MS) / 1000} s`);
}

/**
 * Returns the time from which the log group keeps its lines, in epoch ms.
 * @throws Error with CloudWatch's own words if it refuses, or has no such group
 */
export async function keptFrom(options: InsightsOptions, nowMs: number): Promise<number> {
  const { logGroup } = options;
  const { logGroups = [] } = await call<LogGroups>("DescribeLogGroups", options, { logGroupNamePrefix: logGroup });
  const group = logGroups.find(({ logGroupName }) => logGroupName === logGroup);
  if (!group) throw new Error(`DescribeLogGroups: there is no ${logGroup}`);
  const { creationTime = 0, retentionInDays: days = Infinity } = group;
  return Math.max(creationTime, nowMs - days * DAY_MS);
}

/** A refusal, as CloudWatch words it. */
interface Refused {
  readonly __type?: string;
  readonly message?: string;
  readonly Message?: string;
}

interface LogGroups {
  readonly logGroups?: readonly {
    readonly logGroupName: string;
    readonly creationTime?: number;
    /** Absent: for ever. */
    readonly retentionInDays?: number;
  }[];
}

interface QueryResults {
  readonly status: string;
  readonly results?: readonly (readonly { readonly field: string; readonly value: string }[])[];
}

async function call<T>(action: string, { endpoint, sign, fetch: send = fetch }: InsightsOptions, body: object): Promise<T> {
  const text = JSON.stringify(body);
  const plain = { "content-type": "application/x-amz-json-1.1", "x-amz-target": `Logs_20140328.${action}` };
  const ask = async () => {
    const headers = { ...plain, ...(await sign({ method: "POST", url: endpoint, headers: plain, body: text })) };
    const response = await send(endpoint, { method: "POST", headers, body: text, signal: AbortSignal.timeout(CALL_MS) });
    const answer = (await response.json().catch(() => ({}))) as T & Refused;
    return { response, answer, refusal: { text: JSON.stringify(answer), date: response.headers.get("date"), headers } };
  };
  let sent = await ask();
  if (!sent.response.ok && (await sign.refused?.(sent.refusal))) sent = await ask();
  const { response, answer } = sent;
  if (response.ok) return answer;
  const { __type: type = "", message, Message = message } = answer;
  throw new Error(`${action}: ${type.replace(/^.*#/, "") || response.status}${Message === undefined ? "" : `: ${Message}`}`);
}
