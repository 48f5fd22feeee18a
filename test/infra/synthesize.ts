/** Stacks as `cdk synth` makes them: with the context of cdk.json and the current code of the functions, into their own directory. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { afterAll, onTestFinished, TestRunner } from "vitest";
import { bundleFunction } from "../../infra/bundle.js";
import type { LockServiceProps } from "../../infra/props.js";
import { LockService } from "../../infra/lock-service.js";
import { HoldfastStack } from "../../infra/stack.js";
import { isThorough } from "../support/tier.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

await bundleFunction();

/** The context of cdk.json, with which the deployed stack is made. */
export function cdkContext(): Record<string, unknown> {
  const cdkJson = JSON.parse(readFileSync(join(ROOT, "cdk.json"), "utf8")) as { context: Record<string, unknown> };
  return cdkJson.context;
}

/** An app with cdk.json's context. CloudFormation's own rules are checked in the slow tier, since that takes longer than to make the stack. */
export function newApp(): App {
  return new App({
    outdir: assemblyDirectory(),
    context: cdkContext(),
    builtinCloudFormationValidation: isThorough(),
    treeMetadata: false,
    stackTraces: false,
  });
}

/** The stack of stage dev, made in this process. */
export function synthesize(): HoldfastStack {
  const app = newApp();
  const stack = new HoldfastStack(app, "holdfast-dev");
  app.synth();
  return stack;
}

let ofDev: Template | undefined;

/** The template of stage dev, to read only: the files of a worker share it. */
export function devTemplate(): Template {
  return (ofDev ??= Template.fromStack(synthesize()));
}

/** A user's own stack with a lock service in it, and the additions of `others`. @param region the stack's; by default it has none */
export function synthesizeOwn(
  propsFor: (stack: Stack) => LockServiceProps,
  others: (service: LockService, stack: Stack) => void = () => undefined,
  region?: string,
): Template {
  const app = newApp();
  const stack = new Stack(app, "shop", region === undefined ? {} : { env: { region } });
  others(new LockService(stack, "Locks", propsFor(stack)), stack);
  app.synth();
  return Template.fromStack(stack);
}

/** The warnings of a stack, without the ids that the CDK puts behind them. */
export function warningsOf(stack: Stack): readonly string[] {
  const metadata = stack.node.findAll().flatMap(({ node }) => node.metadata);
  return metadata.filter(({ type }) => type === "aws:cdk:warning").map(({ data }) => (data as string).replace(/ \[ack: .*\]$/, ""));
}

/** The outcome of a run of the app. */
export interface AppRun {
  readonly status: number | null;
  readonly stderr: string;
  /** The directory of the templates and assets. */
  readonly directory: string;
}

/** Runs infra/app.ts as `cdk` does. Its environment has only the path: no credentials, and no home directory to find them in. */
export function runApp(options: { context?: Record<string, unknown> }): AppRun {
  const directory = assemblyDirectory();
  const context = { ...cdkContext(), ...options.context };
  const env = { PATH: process.env["PATH"], CDK_OUTDIR: directory, CDK_CONTEXT_JSON: JSON.stringify(context) };
  const { status, stderr } = spawnSync(process.execPath, ["--import", "tsx", "infra/app.ts"], { cwd: ROOT, env, encoding: "utf8" });
  return { status, stderr, directory };
}

/** A directory that is removed after the current test, or after the current file if called outside of a test. */
function assemblyDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-synth-"));
  const remove = (): void => rmSync(directory, { recursive: true });
  if (TestRunner.getCurrentTest()) onTestFinished(remove);
  else afterAll(remove);
  return directory;
}
