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
    new CfnOutput(this, "Url", { value: this.service.url, description: "The API's base URL (HOLDFAST_URL)" });
    new CfnOutput(this, "TableName", { value: this.service.table.tableName, description: "The table (HOLDFAST_TABLE)" });
  }
}
