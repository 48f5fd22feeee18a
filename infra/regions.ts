/**
 * The Regions of a table that is strongly consistent in several Regions: three replicas, or two and a witness, all of one of AWS's sets. AWS
 * lets none of them be changed later, so a wrong one is refused before anything is deployed.
 */
import { Stack, Token } from "aws-cdk-lib";
import type { Construct } from "constructs";

/** The other Regions of the table. The stack's own has a replica too. */
export interface RegionsOptions {
  /** The other Regions with a replica, which can have a service each: one beside a `witness`, else two. */
  readonly replicas: readonly string[];
  /** The Region of the witness, which stores the table and answers nobody. @default none: there are three replicas */
  readonly witness?: string | undefined;
}

/**
 * The sets of Regions: a table can't be in two of them.
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-dynamodb-globaltable-globaltablewitness.html, read 2026-11-29
 */
const SETS: readonly (readonly string[])[] = [
  ["us-east-1", "us-east-2", "us-west-2"],
  ["eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1"],
  ["ap-northeast-1", "ap-northeast-2", "ap-northeast-3"],
];

const REGIONS = 3;

/** Returns the Regions with a replica, the stack's own first. @throws Error naming the rule of AWS that `regions` breaks */
export function replicasOf(scope: Construct, { replicas, witness }: RegionsOptions): readonly string[] {
  const { region } = Stack.of(scope);
  if (replicas.some((one) => Token.isUnresolved(one))) return [region, ...replicas]; // A parameter of the template.
  if (Token.isUnresolved(region)) throw new Error('regions: the stack must say its own Region, as in env: { region: "us-east-1" }');
  const own = [region, ...replicas];
  const all = witness === undefined ? own : [...own, witness];
  const given = `the stack is in ${region}, with ${JSON.stringify({ replicas, witness })}`;
  if (new Set(all).size !== REGIONS || all.length !== REGIONS)
    throw new Error(`regions: must be three different Regions with the stack's own: three replicas, or two and a witness; ${given}`);
  if (!SETS.some((set) => all.every((one) => set.includes(one))))
    throw new Error(`regions: AWS allows Regions of one of these sets: ${SETS.map((set) => set.join(", ")).join("; ")}; ${given}`);
  return own;
}
