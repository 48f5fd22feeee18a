/**
 * The bytes that a request adds to CloudWatch Logs: the service's own lines, Lambda's lines around them, and the
 * gateway's. Lambda's lines follow its documentation for a function with the text log format:
 * https://docs.aws.amazon.com/lambda/latest/dg/nodejs-logging.html
 */
import type { HttpResult } from "../lambda/http.js";

/** The overhead of a log event. https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html */
const EVENT_BYTES = 26;

const REQUEST_ID = "8f507cfc-0000-4697-b07a-ac58fc914c95";
/** The prefix that Node's runtime puts before a line. */
const PREFIX = `2026-11-22T01:36:15.123Z\t${REQUEST_ID}\tINFO\t`;
/** Lambda's lines for an invocation. A traced invocation has another line, and the first of an environment has more. */
const AROUND = [
  `START RequestId: ${REQUEST_ID} Version: $LATEST\n`,
  `END RequestId: ${REQUEST_ID}\n`,
  `REPORT RequestId: ${REQUEST_ID}\tDuration: 9.53 ms\tBilled Duration: 10 ms\tMemory Size: 512 MB\tMax Memory Used: 110 MB\t\n`,
];

/** Values as long as AWS writes them. The other values come from each request. */
const TYPICAL: Readonly<Record<string, string>> = {
  requestTimeEpoch: "1795311375123",
  requestId: "JKJaXmPLvHcESHA=",
  responseLatency: "14",
  integrationLatency: "12",
  integrationStatus: "200",
  "error.responseType": "-",
};

/** The bytes of a line of the service. */
export function lineBytes(line: object): number {
  return Buffer.byteLength(`${PREFIX}${JSON.stringify(line)}\n`) + EVENT_BYTES;
}

/** The bytes that Lambda writes for every invocation. */
export function platformBytes(): number {
  return AROUND.reduce((sum, line) => sum + Buffer.byteLength(line) + EVENT_BYTES, 0);
}

/** The bytes of the gateway's line for a request. @throws Error if the format has an unknown variable. */
export function accessLineBytes(format: string, routeKey: string, { statusCode, body = "" }: HttpResult): number {
  const known: Readonly<Record<string, string>> = {
    ...TYPICAL,
    routeKey,
    status: String(statusCode),
    responseLength: String(Buffer.byteLength(body)),
  };
  const line = format.replaceAll(/\$context\.([\w.]+)/g, (variable, name: string) => {
    const value = known[name];
    if (value === undefined) throw new Error(`the access log has ${variable}, of whose length nothing is known`);
    return value;
  });
  return Buffer.byteLength(line) + EVENT_BYTES;
}
