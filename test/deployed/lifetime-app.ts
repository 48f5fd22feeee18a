/** The CDK app of a stack on each table that its context names. The tables are there. */
import { App, CfnOutput, Stack } from "aws-cdk-lib";
import { Table } from "aws-cdk-lib/aws-dynamodb";
import { LockService } from "../../infra/lock-service.js";

const app = new App();
for (const table of String(app.node.getContext("tables")).split(",")) {
  const stack = new Stack(app, `on-${table}`);
  const locks = new LockService(stack, "Locks", { table: Table.fromTableName(stack, "Table", table) });
  for (const [name, value] of Object.entries({ Url: locks.url, ApiArn: locks.api.arnForExecuteApi("*", "/*", "$default") }))
    new CfnOutput(stack, name, { value });
}
