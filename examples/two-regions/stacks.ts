/** Locks that survive a Region: one table, a service in each of two Regions, and a function that uses both. */
import { fileURLToPath } from "node:url";
import { type App, type StackProps, Duration, Stack } from "aws-cdk-lib";
import { Architecture, Runtime } from "aws-cdk-lib/aws-lambda";
import { NodejsFunction, OutputFormat } from "aws-cdk-lib/aws-lambda-nodejs";
import { LockService } from "../../infra/index.js";

/** The Regions with a replica of the table and a service, and the Region of the witness. AWS lets none of them be changed later. */
export const REGIONS = ["us-east-1", "us-east-2"] as const;
export const WITNESS = "us-west-2";

/** Adds the stacks to `app`, and returns them in the order of their deployment. */
export function addStacks(app: App): readonly Stack[] {
  // One stack's function has the URLs of both services, so each stack may refer to the other Region.
  const inRegion = (region: string): StackProps => ({ env: { region }, crossRegionReferences: true });
  const [home, away] = REGIONS;

  const homeStack = new Stack(app, `locks-${home}`, inRegion(home));
  const homeLocks = new LockService(homeStack, "Locks", { regions: { replicas: [away], witness: WITNESS } });

  const awayStack = new Stack(app, `locks-${away}`, inRegion(away));
  const awayLocks = LockService.inRegion(awayStack, "Locks", homeLocks);

  const shopStack = new Stack(app, `shop-${home}`, inRegion(home));
  const shop = new NodejsFunction(shopStack, "Shop", {
    entry: fileURLToPath(new URL("shop.ts", import.meta.url)),
    runtime: Runtime.NODEJS_24_X,
    architecture: Architecture.ARM_64,
    timeout: Duration.seconds(30),
    bundling: { format: OutputFormat.ESM },
  });
  // The nearest first: HOLDFAST_URL has both URLs in the order of these lines.
  homeLocks.grantClient(shop);
  awayLocks.grantClient(shop);
  return [homeStack, awayStack, shopStack];
}
