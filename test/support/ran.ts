/**
 * A reporter that records what ran on which engine, for the table in docs/evidence.md, if all of it passed:
 *
 *     npm run deployed -- --reporter=default --reporter=./test/support/ran.ts
 *
 * Run the whole command of a row of {@link ENGINES}: what is recorded is what ran.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Reporter, TestModule, TestRunEndReason } from "vitest/node";

const FILE = fileURLToPath(new URL("ran.json", import.meta.url));
const REPORTERS = "--reporter=default --reporter=./test/support/ran.ts";

/** The outcome of the latest recorded run on an engine. */
export interface Ran {
  readonly passed: number;
  readonly skipped: number;
  readonly date: string;
}

/** The engines, each with what runs there and the command that records it. */
export const ENGINES = {
  dynoxide: { what: "the stores, the agent, the handler", command: `npx vitest run --project quick test/store test/lambda ${REPORTERS}` },
  "DynamoDB Local": {
    what: "the same, on AWS's own engine",
    command: `.ci/dynamodb-local.sh with .engine/dynamodb-local npx vitest run --project quick test/store test/lambda --testTimeout 120000 ${REPORTERS}`,
  },
  "MiniStack, with signatures and IAM": { what: "the deployed stacks", command: `npm run deployed -- ${REPORTERS}` },
  AWS: {
    what: "the conformance, and what only a deployment can show",
    command: `HOLDFAST_URL=… npx vitest run test/e2e/deployed.test.ts ${REPORTERS}`,
  },
} as const;

export function recordedRuns(): Readonly<Partial<Record<keyof typeof ENGINES, Ran>>> {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, "utf8")) as ReturnType<typeof recordedRuns>) : {};
}

function engineOf(modules: readonly TestModule[]): keyof typeof ENGINES {
  if (modules.some(({ project }) => project.name === "deployed")) return "MiniStack, with signatures and IAM";
  const { HOLDFAST_URL: url, DYNAMODB_ENDPOINT: endpoint } = process.env;
  if (url && modules.some(({ moduleId }) => moduleId.endsWith("test/e2e/deployed.test.ts"))) return "AWS";
  return endpoint ? "DynamoDB Local" : "dynoxide";
}

/** Writes ran.json. */
export default class Recorder implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], _errors: unknown, reason: TestRunEndReason): void {
    if (reason !== "passed") return;
    const count = (state: "passed" | "skipped") => modules.reduce((sum, { children }) => sum + [...children.allTests(state)].length, 0);
    const ran: Ran = { passed: count("passed"), skipped: count("skipped"), date: new Date().toISOString().slice(0, 10) };
    writeFileSync(FILE, `${JSON.stringify({ ...recordedRuns(), [engineOf(modules)]: ran }, null, 2)}\n`);
  }
}
