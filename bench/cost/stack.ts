/** Reads the stack's template for its costs: resources with a fixed price, and the log output of each request. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { App } from "aws-cdk-lib";
import { bundleFunction } from "../../infra/bundle.js";
import { HoldfastStack } from "../../infra/stack.js";

/** A resource of a template. */
interface Resource {
  readonly Type: string;
  // The properties depend on the resource.
  readonly Properties: Readonly<Record<string, any>>; // eslint-disable-line @typescript-eslint/no-explicit-any -- read off a template
}

/** The parts of the deployment that costs depend on. */
export interface DeployedStack {
  readonly alarms: number;
  readonly dashboards: number;
  readonly logGroups: number;
  readonly logRetentionDays: number;
  readonly memoryMb: number;
  readonly tracing: boolean;
  readonly pointInTimeRecovery: boolean;
  /** The gateway's access log format, with `$context.…` for its variables. */
  readonly accessLogFormat: string;
  /** Requests per second to each route of that kind. */
  readonly throttles: { readonly other: number; readonly acquire: number };
  /** The function's timeout, in seconds. */
  readonly functionTimeoutSec: number;
}

/** The stack of one stage, with every default. */
export async function deployedStack(): Promise<DeployedStack> {
  await bundleFunction();
  const directory = await mkdtemp(join(tmpdir(), "holdfast-stack-"));
  try {
    const { context } = JSON.parse(readFileSync(fileURLToPath(new URL("../../cdk.json", import.meta.url)), "utf8")) as {
      context: Record<string, unknown>;
    };
    const app = new App({ outdir: directory, context });
    const { artifactId } = new HoldfastStack(app, "holdfast-dev");
    const { Resources } = app.synth().getStackArtifact(artifactId).template as { Resources: Record<string, Resource> };
    return read(Object.values(Resources));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function read(resources: readonly Resource[]): DeployedStack {
  const of = (type: string): Resource["Properties"][] => resources.filter(({ Type }) => Type === type).map(({ Properties }) => Properties);
  const [stage] = of("AWS::ApiGatewayV2::Stage");
  const [table] = of("AWS::DynamoDB::Table");
  const [hold] = of("AWS::Lambda::Function");
  const [log] = of("AWS::Logs::LogGroup");
  const [route] = Object.values(stage?.["RouteSettings"] as Record<string, { ThrottlingRateLimit: number }>);
  return {
    alarms: of("AWS::CloudWatch::Alarm").length,
    dashboards: of("AWS::CloudWatch::Dashboard").length,
    logGroups: of("AWS::Logs::LogGroup").length,
    logRetentionDays: log?.["RetentionInDays"],
    memoryMb: hold?.["MemorySize"],
    tracing: hold?.["TracingConfig"]?.Mode === "Active",
    pointInTimeRecovery: table?.["PointInTimeRecoverySpecification"]?.PointInTimeRecoveryEnabled === true,
    accessLogFormat: stage?.["AccessLogSettings"].Format,
    throttles: { other: stage?.["DefaultRouteSettings"].ThrottlingRateLimit, acquire: route?.ThrottlingRateLimit ?? 0 },
    functionTimeoutSec: hold?.["Timeout"],
  };
}
