import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { LockService } from "holdfast/cdk";

const stack = new Stack(new App(), "shop");
new LockService(stack, "Locks", { tracing: true });
const types = Object.values(Template.fromStack(stack).toJSON().Resources).map(({ Type }) => Type);
console.log(JSON.stringify(types.sort()));
