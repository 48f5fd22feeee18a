/**
 * The bytes that a request adds to CloudWatch Logs: the service's own lines, as they are printed, and the gateway's.
 * Lambda adds nothing to a line that is JSON already, and writes none of its own about a request that succeeded:
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-logformat.html
 */
import type { HttpResult } from "../../lambda/http.js";

/** The overhead of a log event. https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html */
const EVENT_BYTES = 26;

/** Values as long as AWS writes them. The other values come from each request. */
const TYPICAL: Readonly<Record<string, string>> = {
  requestId: "JKJaXmPLvHcESHA=",
  responseLatency: "14",
  "error.responseType": "-",
};

/** The bytes of a line of the service. */
export function lineBytes(line: object): number {
  return Buffer.byteLength(`${JSON.stringify(line)}\n`) + EVENT_BYTES;
}

/** The bytes of the gateway's line for a request. @throws Error if the format has an unknown variable. */
export function accessLineBytes(format: string, routeKey: string, { statusCode }: HttpResult): number {
  const known: Readonly<Record<string, string>> = { ...TYPICAL, routeKey, status: String(statusCode) };
  const line = format.replaceAll(/\$context\.([\w.]+)/g, (variable, name: string) => {
    const value = known[name];
    if (value === undefined) throw new Error(`the access log has ${variable}, of whose length nothing is known`);
    return value;
  });
  return Buffer.byteLength(line) + EVENT_BYTES;
}
