/** Warnings of policies that the stack can't change, because their resources are another app's. Each shows the statement that they need. */
import { type IResource, Annotations, Stack, Token } from "aws-cdk-lib";
import { type PolicyStatementProps, PolicyStatement } from "aws-cdk-lib/aws-iam";
import { RegionInfo } from "aws-cdk-lib/region-info";
import type { Construct } from "constructs";

/** The place of a stack. */
export type Place = Readonly<Record<"partition" | "region" | "account", string>>;

/** Warns that the policy of `resource`, which can't be changed here, needs a statement, and shows it: with words for what isn't known yet. */
export function warnOfPolicy(
  scope: Construct,
  { env }: IResource,
  message: string,
  statementFor: (place: Place) => PolicyStatementProps,
): void {
  const stack = Stack.of(scope);
  const known = (...values: readonly string[]): string => values.find((value) => !Token.isUnresolved(value)) ?? "";
  const region = known(stack.region, env.region, "REGION");
  const place = { region, account: known(stack.account, env.account, "ACCOUNT"), partition: RegionInfo.get(region).partition ?? "aws" };
  const statement = JSON.stringify(stack.resolve(new PolicyStatement(statementFor(place)).toStatementJson()));
  Annotations.of(scope).addWarningV2(`holdfast:${message.split(":", 1).join("")}`, `${message}: ${statement}`);
}
