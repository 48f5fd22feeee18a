/** The settings of a test that must fail: the mistake that `--mode` names is in the sources that it imports. */
import { defineConfig } from "vitest/config";
import { bugNamed } from "./bundle.js";

export default defineConfig(({ mode }) => {
  const { name, file, edits } = bugNamed(mode);
  return {
    plugins: [
      {
        name: "planted",
        enforce: "pre",
        transform(code, id) {
          const here = edits.filter(([, , other = file]) => id.endsWith(`/${other}`));
          if (here.length === 0) return null;
          return here.reduce((text, [find, replace]) => {
            if (text.split(find).length !== 2) throw new Error(`${name}: ${id} does not have exactly once: ${find}`);
            return text.replace(find, () => replace);
          }, code);
        },
      },
    ],
    test: {
      include: ["test/**/*.test.ts"],
      setupFiles: ["test/support/fixed-seed.ts"],
      provide: { tier: "quick" },
      env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
    },
  };
});
