/** The run against the emulator: `npm run deployed`. It is no project of the other tests, because it needs Python and deploys for a while. */
import { defineConfig } from "vitest/config";

// The workers and the CDK's processes inherit it.
process.env["EMULATOR_FOLDER"] = "deployed";

export default defineConfig({
  test: {
    name: "deployed",
    include: ["test/deployed/*.test.ts"],
    globalSetup: ["test/deployed/setup.ts"],
    setupFiles: ["test/deployed/loopback-names.ts"],
    env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
    maxWorkers: 4,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 120_000,
  },
});
