/**
 * What a request leaves in CloudWatch Logs, in bytes: the service's own lines, Lambda's around them, and the
 * gateway's. Lambda's are as its documentation shows them, for a function whose format is text:
 * https://docs.aws.amazon.com/lambda/latest/dg/nodejs-logging.html
 */
import type { HttpResult } from "../lambda/http.js";

/** Of an event, beside its text. https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html */
const EVENT_BYTES = 26;

const REQUEST_ID = "8f507cfc-0000-4697-b07a-ac58fc914c95";
/** What Node's runtime puts before a line. */
const PREFIX = `2026-11-22T01:36:15.123Z\t${REQUEST_ID}\tINFO\t`;
/** Of an invocation; of one that is traced there is another, and of the first of an environment some more. */
const AROUND = [
  `START RequestId: ${REQUEST_ID} Version: $LATEST\n`,
  `END RequestId: ${REQUEST_ID}\n`,
  `REPORT RequestId: ${REQUEST_ID}\tDuration: 9.53 ms\tBilled Duration: 10 ms\tMemory Size: 512 MB\tMax Memory Used: 110 MB\t\n`,
];

/** As long as AWS would write them; the others are told of each request. */
const TYPICAL: Readonly<Record<string, string>> = {
  requestTimeEpoch: "1795311375123",
  requestId: "JKJaXmPLvHcESHA=",
  responseLatency: "14",
  integrationLatency: "12",
  integrationStatus: "200",
  "error.responseType": "-",
};

/** Of a line of the service. */
export function lineBytes(line: object): number {
  return Buffer.byteLength(`${PREFIX}${JSON.stringify(line)}\n`) + EVENT_BYTES;
}

/** Of what Lambda writes of every invocation. */
export function platformBytes(): number {
  return AROUND.reduce((sum, line) => sum + Buffer.byteLength(line) + EVENT_BYTES, 0);
}

/** Of the gateway's line on a request. @throws Error when the format has something that nothing is known of. */
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
