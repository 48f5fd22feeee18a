/** The stack as `cdk synth` sees it: with the context of cdk.json, into a directory of its own, and bundled only when asked. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { App } from "aws-cdk-lib";
import { afterAll } from "vitest";
import { HoldfastStack } from "../../infra/stack.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const WITHOUT_BUNDLING = { "aws:cdk:bundling-stacks": [] };

/** The context of cdk.json: what the deployed stack is made with. */
export function cdkContext(): Record<string, unknown> {
  const cdkJson = JSON.parse(readFileSync(join(ROOT, "cdk.json"), "utf8")) as { context: Record<string, unknown> };
  return cdkJson.context;
}

/** The stack of stage dev, made in this process and not bundled. */
export function synthesize(): HoldfastStack {
  const app = new App({ outdir: assemblyDirectory(), context: { ...cdkContext(), ...WITHOUT_BUNDLING } });
  const stack = new HoldfastStack(app, "holdfast-dev");
  app.synth();
  return stack;
}

/** What a run of the app came to. */
export interface AppRun {
  readonly status: number | null;
  readonly stderr: string;
  /** Where the templates and assets are. */
  readonly directory: string;
}

/** Runs infra/app.ts as `cdk` does. Of the environment it gets the path alone: no credentials, and no home to find them in. */
export function runApp(options: { context?: Record<string, unknown>; bundle?: boolean }): AppRun {
  const directory = assemblyDirectory();
  const context = { ...cdkContext(), ...(options.bundle === true ? {} : WITHOUT_BUNDLING), ...options.context };
  const env = { PATH: process.env["PATH"], CDK_OUTDIR: directory, CDK_CONTEXT_JSON: JSON.stringify(context) };
  const { status, stderr } = spawnSync(process.execPath, ["--import", "tsx", "infra/app.ts"], { cwd: ROOT, env, encoding: "utf8" });
  return { status, stderr, directory };
}

const directories: string[] = [];

function assemblyDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-synth-"));
  directories.push(directory);
  return directory;
}

afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true });
});
