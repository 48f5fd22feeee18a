/** The lowest version of each peer that package.json allows: types, the engine, and the stack. The repository itself has the newest. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Template } from "aws-cdk-lib/assertions";
import { App, Stack } from "aws-cdk-lib";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { DefinitionBody, Pass, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { LockService } from "../../infra/index.js";
import { bundleFunction } from "../../infra/bundle.js";
import { LockedSection } from "../../infra/step-functions.js";
import { freshTable } from "../support/engine.js";
import { ROOT } from "../tidy/tree.js";
import { type Packed, ENTRIES, MANIFEST, run, typeErrors, typesOf } from "./project.js";

/** A resource of a template. */
interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
}

/** The oldest TypeScript that takes the types as they are, and the oldest that takes them unchecked. */
const OLD_TYPESCRIPTS = ["typescript-5.2@npm:typescript@5.2.2", "typescript-5.0@npm:typescript@5.0.4"];

/** The compiler's options of a project with the peers. */
const PEERED = { module: "nodenext", lib: ["es2022", "dom"], types: ["node"], skipLibCheck: true, exactOptionalPropertyTypes: false };

/** The runner of each peer in its lowest version: a program of test/package/programs, or the types alone. */
const RUN_BY: Readonly<Record<string, string>> = {
  "@aws-sdk/client-dynamodb": "on-the-table.mjs",
  "@aws-sdk/credential-provider-node": "signed.mjs",
  "@aws-sdk/lib-dynamodb": "on-the-table.mjs",
  "@aws/durable-execution-sdk-js": "test/durable",
  "@opentelemetry/api": "traced.mjs",
  "@types/aws-lambda": "types",
  "aws-cdk-lib": "synth.mjs",
  constructs: "synth.mjs",
  croner: "cron.mjs",
};

/** The lowest version of a range, such as `^3.363.0` or `>=2.0.0 <6`. */
function lowestOf(range: string): string {
  const version = /\d+\.\d+\.\d+/.exec(range)?.[0];
  if (version === undefined) throw new Error(`${range} names no version`);
  return version;
}

/** Describes the package with those. */
export function describeLowestPeers(packed: () => Packed): void {
  describe("with the lowest version of each peer", () => {
    const lowest = Object.entries(MANIFEST.peerDependencies).map(([name, range]) => `${name}@${lowestOf(range)}`);
    let project: string;
    const program = (name: string, env?: NodeJS.ProcessEnv) => run(project, process.execPath, [name], env);

    beforeAll(async () => {
      project = await packed().project("lowest", "module", [...lowest, "typescript@5.9.3", "@types/node@20.19.43", ...OLD_TYPESCRIPTS]);
    });

    it("runs each of them, and test/durable runs the lowest SDK for durable executions", async () => {
      expect(Object.keys(RUN_BY)).toEqual(Object.keys(MANIFEST.peerDependencies));
      const sdk = "@aws/durable-execution-sdk-js";
      const installed = await readFile(join(ROOT, "node_modules", sdk, "package.json"), "utf8");
      expect(JSON.parse(installed)).toHaveProperty("version", lowestOf(MANIFEST.peerDependencies[sdk]!));
    });

    it("knows the occurrences of cron expressions where the clocks change", async () => {
      const { stdout, stderr } = await program("cron.mjs");
      expect([JSON.parse(stdout || "{}"), stderr]).toEqual([
        { checks: 7560, wrong: [], wrongs: 0, leapDays: ["2024-02-29T00:00:00.000Z", "2028-02-29T00:00:00.000Z"] },
        "",
      ]);
    });

    it("has types of every entry", async () => {
      const source = [
        ...typesOf(ENTRIES),
        'import { App, Stack } from "aws-cdk-lib";',
        'import { DynamoDBClient } from "@aws-sdk/client-dynamodb";',
        'import { createLockClient } from "holdfast/dynamodb";',
        'import { LockService } from "holdfast/cdk";',
        'import { traced } from "holdfast/otel";',
        'export const locks = createLockClient({ tableName: "locks", client: new DynamoDBClient({}) });',
        'export const withSpans: typeof locks = traced(locks, { keyAttribute: (key) => key.split(":")[0] });',
        'export const service: LockService = new LockService(new Stack(new App(), "shop"), "Locks", { tracing: true });',
      ].join("\n");
      expect(await typeErrors(project, source, PEERED, { tsc: join(project, "node_modules/.bin/tsc") })).toBe("");
    });

    describeOldTypeScripts(() => project);

    it.each(["", "1"])("locks, locks many and runs once on the engine, WITH_CLIENT=%s", async (given) => {
      const { tableName, client } = await freshTable();
      client.destroy();
      const env = { HOLDFAST_TABLE: tableName, WITH_CLIENT: given, ENGINE: inject("engineEndpoint") };
      expect(await program("on-the-table.mjs", env)).toEqual({ stdout: "locked, refused, locked many, ran once\n", stderr: "" });
    });

    it("traces, as far as an API without an SDK does", async () => {
      expect(await program("traced.mjs")).toEqual({ stdout: "locked, held, released\n", stderr: "" });
    });

    it("signs a request", async () => {
      const { stdout } = await program("signed.mjs");
      expect(stdout).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/execute-api\/aws4_request, /);
    });

    it("synthesizes the resources that the newest does, and a state machine of the same states", async () => {
      await bundleFunction();
      const stack = new Stack(new App(), "shop");
      const service = new LockService(stack, "Locks", { tracing: true, wake: true });
      const section = new LockedSection(stack, "Order", { service, key: "k", leaseMs: 60_000, work: () => Pass.jsonata(stack, "work") });
      new StateMachine(stack, "Machine", { definitionBody: DefinitionBody.fromChainable(section) });
      const resources = Object.values((Template.fromStack(stack).toJSON() as { Resources: Record<string, Resource> }).Resources);
      const machine = resources.find(({ Type }) => Type === "AWS::StepFunctions::StateMachine");
      const { stdout } = await program("synth.mjs");
      expect(JSON.parse(stdout)).toEqual({
        types: resources.map(({ Type }) => Type).sort(),
        definition: JSON.stringify(machine?.Properties["DefinitionString"]),
      });
    });
  });
}

/** Describes the types of the package alone for those. */
function describeOldTypeScripts(project: () => string): void {
  it.each([
    { version: "5.2", skipLibCheck: false },
    { version: "5.0", skipLibCheck: true },
  ])("has types for TypeScript $version, with skipLibCheck $skipLibCheck", async ({ version, skipLibCheck }) => {
    const source = [
      ...typesOf(["holdfast", "holdfast/testing"]),
      'import { createLockClient, key } from "holdfast";',
      "export const locks = createLockClient({ url: process.env.HOLDFAST_URL });",
      'export const held: Promise<boolean> = locks.withLock(key("ORDER", 1231), (lease) => lease.isHeld());',
    ].join("\n");
    const tsc = join(project(), `node_modules/typescript-${version}/bin/tsc`);
    expect(await typeErrors(project(), source, { module: "nodenext", lib: ["es2022"], types: ["node"], skipLibCheck }, { tsc })).toBe("");
  });
}
