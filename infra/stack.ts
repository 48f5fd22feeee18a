/** The stack: one lock service and its outputs. It is thin, so that the construct also works in your own stack. */
import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { LockService } from "./lock-service.js";
import type { LockServiceProps } from "./props.js";

/** The lock service of one stage. */
export class HoldfastStack extends Stack {
  /** The stack's lock service. */
  readonly service: LockService;

  /** @param locksFor returns the service's options, which may use parameters of this stack */
  constructor(scope: Construct, id: string, props?: StackProps, locksFor: (stack: Stack) => LockServiceProps = () => ({})) {
    super(scope, id, { description: "holdfast: lease locks behind an HTTP API", ...props });
    const options = locksFor(this);
    this.service = new LockService(this, "Locks", options);
    const { url, api, table, functions, dashboard, log } = this.service;
    const outputs: Record<string, [value: string, description: string]> = {
      Url: [url, "The API's base URL (HOLDFAST_URL)"],
      ...(options.functionUrl && { FunctionUrl: [this.service.functionUrlFor(), "The function URL for all keys (HOLDFAST_URL)"] }),
      ApiArn: [api.arnForExecuteApi("*", "/*", "$default"), "All of the API, for policies of your own"],
      TableName: [table.tableName, "The table (HOLDFAST_TABLE)"],
      TableArn: [table.tableArn, "The table, for policies of your own"],
      AcquireFunctionArn: [functions.acquire.functionArn, "Serves acquires, inspections and starts of runs"],
      HoldFunctionArn: [functions.hold.functionArn, "Serves renewals, releases, checks and outcomes"],
      AdminFunctionArn: [functions.admin.functionArn, "Serves break, list and reset"],
      LogGroupName: [log.logGroupName, "The log, with each key's history (holdfast ui --log-group)"],
      DashboardName: [dashboard.dashboardName, "In CloudWatch"],
    };
    for (const [name, [value, description]] of Object.entries(outputs)) new CfnOutput(this, name, { value, description });
  }
}
