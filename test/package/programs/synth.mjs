import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { DefinitionBody, Pass, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { LockService } from "holdfast/cdk";
import { LockedSection } from "holdfast/step-functions";

const stack = new Stack(new App(), "shop");
const service = new LockService(stack, "Locks", { tracing: true, wake: true });
const section = new LockedSection(stack, "Order", { service, key: "k", leaseMs: 60_000, work: () => Pass.jsonata(stack, "work") });
new StateMachine(stack, "Machine", { definitionBody: DefinitionBody.fromChainable(section) });
const resources = Object.values(Template.fromStack(stack).toJSON().Resources);
const machine = resources.find(({ Type }) => Type === "AWS::StepFunctions::StateMachine");
const definition = JSON.stringify(machine.Properties.DefinitionString);
console.log(JSON.stringify({ types: resources.map(({ Type }) => Type).sort(), definition }));
