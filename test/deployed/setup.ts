/**
 * Starts the emulator, bootstraps the account with the CDK's command line, and deploys the stacks of variants.ts, all of them once for the
 * whole run. Afterwards it destroys them.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { build } from "esbuild";
import { bundleHosted } from "../../console/bundle.js";
import { ACCOUNT, type Emulator, REGION, RUN_DIRECTORY, startEmulator } from "./emulator.js";
import { FUNCTIONS_DIRECTORY } from "./variants.js";

export const ROOT_DIRECTORY = fileURLToPath(new URL("../..", import.meta.url));

/** The template without the CDK, and its zip. */
export const TEMPLATE_DIRECTORY = join(RUN_DIRECTORY, "template");

/** The outputs of the deployed stacks, by the name of the stack. */
export type Stacks = Readonly<Record<string, Readonly<Record<string, string>>>>;

declare module "vitest" {
  export interface ProvidedContext {
    /** The address of the emulator. */
    endpoint: string;
    stacks: Stacks;
  }
}

/** Runs the CDK's command line. @throws Error with what it printed */
export async function cdk(env: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<void> {
  const options = { cwd: ROOT_DIRECTORY, env: { ...process.env, ...env, CDK_DISABLE_VERSION_CHECK: "1" }, maxBuffer: 2 ** 26 };
  await promisify(execFile)(join(ROOT_DIRECTORY, "node_modules/.bin/cdk"), words, options).catch((error: unknown) => {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
    throw new Error(`cdk ${words.join(" ")}\n${stdout}\n${stderr}`);
  });
}

/** Deploys stacks of a CDK app, and returns the outputs of these. */
export async function deploy(
  env: Emulator["env"],
  app: string,
  stacks: readonly string[],
  context: readonly string[] = [],
): Promise<Stacks> {
  const assembly = join(RUN_DIRECTORY, `cdk.out-${Date.now()}`);
  const outputs = `${assembly}.json`;
  const settings = context.flatMap((one) => ["--context", one]);
  // What `cdk.json` would build again is built.
  const how = ["--build", "true", "--require-approval", "never", "--concurrency", "8", "--output", assembly, "--outputs-file", outputs];
  await cdk(env, "deploy", ...stacks, "--app", `node --import tsx ${app}`, ...settings, ...how);
  return JSON.parse(readFileSync(outputs, "utf8")) as Stacks;
}

/** Bundles the service's functions, with the template without the CDK, and the functions of the run. */
export async function bundle(): Promise<void> {
  const functions = { entryPoints: [join(ROOT_DIRECTORY, "test/deployed/functions.ts")], outfile: join(FUNCTIONS_DIRECTORY, "index.js") };
  await Promise.all([
    promisify(execFile)(process.execPath, ["--import", "tsx", "infra/template.ts", TEMPLATE_DIRECTORY], { cwd: ROOT_DIRECTORY }),
    bundleHosted(join(ROOT_DIRECTORY, "infra/console")),
    build({ ...functions, bundle: true, platform: "node", target: "node20", logLevel: "error" }),
  ]);
}

export const APP = "test/deployed/app.ts";

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const emulator = await startEmulator();
  try {
    await bundle();
    await cdk(emulator.env, "bootstrap", `aws://${ACCOUNT}/${REGION}`, "--app", "");
    provide("stacks", await deploy(emulator.env, APP, ["--all"]));
    provide("endpoint", emulator.endpoint);
  } catch (error) {
    await emulator.stop();
    throw error;
  }
  return async () => {
    try {
      await cdk(emulator.env, "destroy", "--all", "--force", "--app", `node --import tsx ${APP}`);
    } finally {
      await emulator.stop();
    }
  };
}
