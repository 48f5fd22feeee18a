/** The stack: one lock service and where to find it. Thin, so that the construct also serves in a stack of one's own. */
import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { LockService } from "./lock-service.js";

/** One stage's lock service. */
export class HoldfastStack extends Stack {
  /** What this stack is about. */
  readonly service: LockService;

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, { description: "holdfast: lease locks behind an HTTP API", ...props });
    this.service = new LockService(this, "Locks");
    const { url, api, table, functions, dashboard } = this.service;
    const outputs: Record<string, [value: string, description: string]> = {
      Url: [url, "The API's base URL (HOLDFAST_URL)"],
      ApiArn: [api.arnForExecuteApi("*", "/*", "$default"), "All of the API, for policies of your own"],
      TableName: [table.tableName, "The table (HOLDFAST_TABLE)"],
      TableArn: [table.tableArn, "The table, for policies of your own"],
      AcquireFunctionArn: [functions.acquire.functionArn, "Serves whoever wants in"],
      HoldFunctionArn: [functions.hold.functionArn, "Serves whoever holds"],
      AdminFunctionArn: [functions.admin.functionArn, "Serves break, list and reset"],
      DashboardName: [dashboard.dashboardName, "In CloudWatch"],
    };
    for (const [name, [value, description]] of Object.entries(outputs)) new CfnOutput(this, name, { value, description });
  }
}
