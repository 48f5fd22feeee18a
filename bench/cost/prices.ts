/**
 * AWS's prices in us-east-1, in US dollars, without the free tiers and volume discounts. AWS loads most prices by
 * script, so each price has AWS's own page and the page on which the figure was read. An update of the list also
 * changes `PRICED_ON`.
 */

/** The date on which the figures were read. */
export const PRICED_ON = "2026-11-22";

/** The region of the prices. */
export const REGION = "us-east-1";

/** A price. */
export interface Price {
  readonly what: string;
  readonly usd: number;
  readonly per: string;
  /** AWS's page, and the page on which the figure was read, if that is another. */
  readonly pages: readonly string[];
}

const DYNAMODB = "https://aws.amazon.com/dynamodb/pricing/on-demand/";
const READ_DYNAMODB = "https://airbyte.com/data-engineering-resources/dynamodb-pricing";
const CLOUDWATCH = "https://aws.amazon.com/cloudwatch/pricing/";
const READ_LOGS = "https://hykell.com/kb/platform-specific-guides/aws-cloudwatch-logs-pricing";
const LAMBDA = "https://aws.amazon.com/lambda/pricing/";
const READ_LAMBDA = "https://cloudchipr.com/blog/aws-lambda-pricing";

/** The price list. */
export const PRICES = {
  writeUnits: { what: "DynamoDB, on demand: write", usd: 0.625, per: "million units", pages: [DYNAMODB, READ_DYNAMODB] },
  readUnits: { what: "DynamoDB, on demand: read", usd: 0.125, per: "million units", pages: [DYNAMODB, READ_DYNAMODB] },
  storage: { what: "DynamoDB: storage", usd: 0.25, per: "GB and month", pages: ["https://aws.amazon.com/dynamodb/pricing/"] },
  recovery: {
    what: "DynamoDB: point-in-time recovery",
    usd: 0.2,
    per: "GB and month",
    pages: [DYNAMODB, "https://finops.com.py/services/dynamodb/backups"],
  },
  requests: {
    what: "API Gateway: HTTP API",
    usd: 1,
    per: "million requests",
    pages: ["https://aws.amazon.com/api-gateway/pricing/", "https://awsforengineers.com/blog/aws-api-gateway-pricing-explained"],
  },
  invocations: { what: "Lambda: requests", usd: 0.2, per: "million", pages: [LAMBDA, READ_LAMBDA] },
  gbSeconds: { what: "Lambda, arm64: time", usd: 0.0000133334, per: "GB-second", pages: [LAMBDA, READ_LAMBDA] },
  logs: { what: "CloudWatch Logs: taken in", usd: 0.5, per: "GB", pages: [CLOUDWATCH, READ_LOGS] },
  logStorage: { what: "CloudWatch Logs: kept", usd: 0.03, per: "GB and month", pages: [CLOUDWATCH, READ_LOGS] },
  metrics: {
    what: "CloudWatch: a metric of one's own",
    usd: 0.3,
    per: "month in which it is written, by the hour",
    pages: [CLOUDWATCH, "https://signoz.io/guides/cloudwatch-pricing"],
  },
  alarms: {
    what: "CloudWatch: an alarm",
    usd: 0.1,
    per: "month",
    pages: [CLOUDWATCH, "https://c3x.dev/resources/aws/aws_cloudwatch_metric_alarm"],
  },
  dashboards: {
    what: "CloudWatch: a dashboard",
    usd: 3,
    per: "month",
    pages: [CLOUDWATCH, "https://cloudburn.io/blog/amazon-cloudwatch-pricing"],
  },
  traces: { what: "X-Ray: traces", usd: 5, per: "million", pages: ["https://aws.amazon.com/xray/pricing/"] },
} as const satisfies Record<string, Price>;

const BYTES_PER_GB = 1024 ** 3;

/** Assumptions, because nothing here was measured on AWS. */
export interface Assumptions {
  /** The time that Lambda bills for a request, in ms. */
  readonly billedMs: number;
  /** The part of the requests that is traced, beyond the first of each second. */
  readonly traced: number;
  readonly memoryMb: number;
}

/** The cost of one lock, or of a million locks in millions of dollars. */
export interface Cost {
  readonly gateway: number;
  readonly lambda: number;
  readonly table: number;
  readonly logs: number;
  readonly traces: number;
  readonly total: number;
}

/** The use of AWS, in the units of its prices. */
export interface Used {
  readonly requests: number;
  readonly writeUnits: number;
  readonly readUnits: number;
  readonly logBytes: number;
}

/** The cost in dollars of a million times that use. */
export function costOfAMillion(used: Used, { billedMs, traced, memoryMb }: Assumptions): Cost {
  const gbSeconds = ((used.requests * billedMs) / 1000) * (memoryMb / 1024);
  const parts = {
    gateway: used.requests * PRICES.requests.usd,
    lambda: used.requests * PRICES.invocations.usd + gbSeconds * PRICES.gbSeconds.usd * 1e6,
    table: used.writeUnits * PRICES.writeUnits.usd + used.readUnits * PRICES.readUnits.usd,
    logs: ((used.logBytes * 1e6) / BYTES_PER_GB) * PRICES.logs.usd,
    traces: used.requests * traced * PRICES.traces.usd,
  };
  return { ...parts, total: Object.values(parts).reduce((sum, part) => sum + part, 0) };
}
