/**
 * The settings of the tests under `npm run mutation`. test/mutation/parts.ts says which files run. Each mutant gets a fresh worker, which
 * its test files share. An engine is started once, for tests that need one.
 */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    environment: "node",
    isolate: false,
    globalSetup: ["test/support/engine.ts"],
    include: ["test/**/*.test.ts"],
    exclude: ["test/**/*.slow.test.ts"],
    provide: { tier: "quick" },
    env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
    testTimeout: 60_000,
    hookTimeout: 90_000,
  },
});
