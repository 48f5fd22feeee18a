/** The CDK app. The token issuer and the URLs of the provider and the carrier come as context: the README has the whole command. */
import { App } from "aws-cdk-lib";
import { OrdersStack } from "./stack.js";

const HTTPS = /^https:\/\/\S+$/;

const app = new App();

function given(name: string, rule: RegExp, example: string): string {
  const value: unknown = app.node.tryGetContext(name);
  if (typeof value === "string" && rule.test(value)) return value;
  console.error(`${name} must be given: -c ${name}=${example}`);
  process.exit(1);
}

new OrdersStack(app, "orders", {
  issuer: given("issuer", HTTPS, "https://…"),
  audience: given("audience", /\S/, "…"),
  providerUrl: given("provider", HTTPS, "https://…"),
  carrierUrl: given("carrier", HTTPS, "https://…"),
});
