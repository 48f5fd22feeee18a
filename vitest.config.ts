/** How the tests run: files side by side, each on its own keys, all on the one engine that globalSetup starts. */
import { transform } from "esbuild";
import { defineConfig } from "vitest/config";
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** The simulation first, which takes longest: a file that begins last is waited for alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => moduleId.includes("/test/simulation/");
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  plugins: [
    {
      // Node 20 has no decorators, and vite leaves them as they are.
      name: "lower-decorators",
      enforce: "pre",
      transform(code, id) {
        if (!id.endsWith(".ts") || !/^\s*@\w+\(/m.test(code)) return null;
        return transform(code, { loader: "ts", target: "es2022", sourcemap: true, sourcefile: id });
      },
    },
  ],
  test: {
    environment: "node",
    // Node 20 is what this project supports; that the AWS SDK will leave it one day is no news here.
    env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/engine.ts"],
    // Vitest would leave one core to whoever watches: of two, half.
    maxWorkers: "100%",
    sequence: { sequencer: LongestFirst },
    // Generous, for a loaded machine: a test that waits for real time is wrong, however long it may take.
    testTimeout: 60_000,
    hookTimeout: 90_000,
    teardownTimeout: 10_000,
    coverage: { provider: "v8", include: ["lib/**", "lambda/**"], reporter: ["text", "html"] },
  },
});
