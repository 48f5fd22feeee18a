/**
 * How the tests run, in two tiers that a file's name tells apart: `*.slow.test.ts` runs in the slow one, every other
 * `*.test.ts` in the quick one. A few run in both, with more in the slow one (test/support/tier.ts). All of them
 * share the one engine that globalSetup starts, each on its own keys.
 *
 * The slow tier is two projects: `waiting` has the long files that use about half a core, such as those of real leases and of Chromium.
 * `.ci/run` runs it beside the others.
 *
 * The quick files of the pages, the examples, the stack and the tree's shape are a project of their own, which `npm run check` runs: a change
 * of a page, an export or the stack breaks them, and a change inside the product seldom does. So no worker of the quick
 * tests imports the CDK, which takes seconds.
 *
 * The files of these two projects share workers, and may leave nothing changed for each other (test/support/left-behind.ts).
 * `*.isolated.test.ts` is for those that can't: each has a worker of its own.
 */
import { transform } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { TestProjectInlineConfiguration } from "vitest/config";
import { defineConfig } from "vitest/config";
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

const SLOW = "test/**/*.slow.test.ts";
const ISOLATED = "test/**/*.isolated.test.ts";
/** The run against an emulator of AWS has a configuration of its own. */
const DEPLOYED = "test/deployed/**";
/** The tests of the pages, of the examples, of the stack and of the tree's shape. */
const TREE = ["test/{docs,examples,tidy}/**/*.test.ts", "test/{infra,step-functions}/*.test.ts"];
/** The slow files that mostly wait: for real time, for processes that start, for a browser. */
const WAITING = [
  "test/{chaos,clients}/*.slow.test.ts",
  "test/console/*.slow.test.ts",
  "test/bin/{ending,in-terminal,lease-lost,once,progress,silence,watch}.slow.test.ts",
  "test/{client/transport/{doors,failover},examples/tour,infra/console-hosted}.slow.test.ts",
];
/** The options by which files are compiled. */
const TSCONFIGS = ["tsconfig.json", "examples/frameworks/tsconfig.json"];
/** The files that run in both tiers, with less in the quick one, or with other backends (test/support/tier.ts). */
const SIZED = [
  "test/adapters/{once,rate-limit,framing}.test.ts",
  "test/durable/crashes.test.ts",
  "test/client/conformance/*.test.ts",
  "test/client/run/runs.test.ts",
  "test/client/lease/heartbeat-outage.test.ts",
  "test/{client/{closing,jobs/tick},simulation/simulation}.test.ts",
  "test/client/acquire/local-queue-crowd.test.ts",
  "test/core/rate.property.test.ts",
  "test/core/keeping.test.ts",
  "test/lambda/fuzz.test.ts",
  "test/store/{costs/{queue,set}-units,limit-differential,lost-responses/*,queue-predicates,record-bytes}.test.ts",
];

/** The longest files, the longest first: the beginnings of their paths. A new clone has no durations of its own. */
const LONGEST = [
  ...["package/packed", "docs/costs", "simulation/must-fail-queues", "console/page", "client/transport/failover.slow"],
  ...["chaos", "store/differential", "simulation", "examples/tour", "bin/lease-lost", "bin/once"],
  ...["client/run/runs.test", "e2e/conformance.test", "client/conformance"],
].map((beginning) => `/test/${beginning}`);

/**
 * One project after the other, since only neighbours share a worker, but both of the slow tier together; in each the longest first, for
 * which the run would wait. With `--sequence.shuffle --sequence.seed=N` in an order that N alone decides, to see that no file depends on
 * another.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { shuffle, seed } = this.ctx.config.sequence;
    if (shuffle) return files.toSorted((a, b) => orderAt(seed, a).localeCompare(orderAt(seed, b)));
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const place = LONGEST.findIndex((beginning) => moduleId.includes(beginning));
      return place < 0 ? LONGEST.length : place;
    };
    const groupOf = ({ project }: TestSpecification): string => (project.name === "waiting" ? "slow" : project.name);
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => groupOf(a).localeCompare(groupOf(b)) || placeOf(a) - placeOf(b));
  }
}

/** Returns a short digest of the files' contents. */
function digestOf(files: readonly string[]): string {
  const hash = createHash("sha256");
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest("hex").slice(0, 12);
}

/** The project, then a hash of the file's name with the seed. */
function orderAt(seed: number, { project, moduleId }: TestSpecification): string {
  return `${project.name} ${createHash("sha256").update(`${seed} ${moduleId}`).digest("hex")}`;
}

/** The files of a project that share the modules of a worker: 200 imports of the same code took longer than the tests of it. */
const SHARED: TestProjectInlineConfiguration["test"] = {
  isolate: false,
  setupFiles: ["test/support/left-behind.ts"],
  provide: { tier: "quick" },
};

/** Both projects of the slow tier: they come last, with one worker more than there are cores, since some files mostly wait. */
const SLOW_TIER: TestProjectInlineConfiguration["test"] = {
  maxWorkers: availableParallelism() + 1,
  sequence: { groupOrder: 1 },
  provide: { tier: "slow" },
  // So long that the compilers and bundlers that yield in .ci/run come to an end.
  testTimeout: 300_000,
  hookTimeout: 300_000,
};

/** A project of that name. */
function project(name: string, test: TestProjectInlineConfiguration["test"]): TestProjectInlineConfiguration {
  return {
    plugins: [
      {
        // Node 20 has no decorators, and vite leaves them as they are.
        name: "lower-decorators",
        enforce: "pre",
        transform(code, id) {
          // The examples of frameworks have the legacy ones, which vite lowers as their tsconfig.json says.
          if (!id.endsWith(".ts") || id.includes("/examples/frameworks/") || !/^\s*@\w+\(/m.test(code)) return null;
          return transform(code, { loader: "ts", target: "es2022", sourcemap: true, sourcefile: id });
        },
      },
    ],
    test: {
      name,
      environment: "node",
      // Node 20 is what this project supports; that the AWS SDK will leave it one day is no news here.
      env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
      // Vitest would leave one core to whoever watches: of two, half.
      maxWorkers: "100%",
      // Generous, for a loaded machine: a test that waits for real time is wrong, however long it may take.
      testTimeout: 60_000,
      hookTimeout: 90_000,
      ...test,
      setupFiles: ["test/support/fixed-seed.ts", test?.setupFiles ?? []].flat(),
    },
  };
}

export default defineConfig({
  test: {
    globalSetup: ["test/support/engine.ts"],
    // Each project would compile every file anew. The cache goes by a file's content, this file's and the lock file's; its folder by the
    // compiler's options.
    experimental: { fsModuleCache: true, fsModuleCachePath: `node_modules/.cache/vitest-${digestOf(TSCONFIGS)}` },
    sequence: { sequencer: LongestFirst },
    teardownTimeout: 10_000,
    coverage: { provider: "v8", include: ["lib/**", "lambda/**"], reporter: ["text", "html"] },
    projects: [
      project("quick", { include: ["test/**/*.test.ts"], exclude: [SLOW, ISOLATED, DEPLOYED, ...TREE], ...SHARED }),
      project("tree", { include: TREE, exclude: [SLOW, ISOLATED], ...SHARED }),
      project("isolated", { include: [ISOLATED], provide: { tier: "quick" } }),
      project("slow", { include: [SLOW, ...SIZED], exclude: WAITING, ...SLOW_TIER }),
      project("waiting", { include: WAITING, ...SLOW_TIER }),
    ],
  },
});
