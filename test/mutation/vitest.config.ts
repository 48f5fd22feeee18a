/**
 * How the tests run under `npm run mutation`: without projects, and each file in a fresh worker, so that a mutant of a
 * constant is seen. test/mutation/parts.ts says which files run. An engine is started once, since the store's tests need one.
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
