/** The CDK app of a stack on a table that is there, which its context names. */
import { App, CfnOutput, Stack } from "aws-cdk-lib";
import { Table } from "aws-cdk-lib/aws-dynamodb";
import { LockService } from "../../infra/lock-service.js";

const app = new App();
const stack = new Stack(app, "again");
const locks = new LockService(stack, "Locks", { table: Table.fromTableName(stack, "Table", String(app.node.getContext("table"))) });
for (const [name, value] of Object.entries({ Url: locks.url, ApiArn: locks.api.arnForExecuteApi("*", "/*", "$default") }))
  new CfnOutput(stack, name, { value });
