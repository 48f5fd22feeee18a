/**
 * Builds the package into `dist/`: ES modules, the same sources as CommonJS in `dist/cjs/`, and the functions' code beside the construct.
 * The construct is CommonJS only, as `aws-cdk-lib` is.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleFunction } from "./bundle.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
const CJS = join(DIST, "cjs");

async function compile(project: string): Promise<void> {
  const tsc = spawn(process.execPath, [join(ROOT, "node_modules/@typescript/native/bin/tsc"), "-p", join(ROOT, project)], {
    stdio: "inherit",
  });
  const [status] = (await once(tsc, "exit")) as [number | null];
  if (status !== 0) throw new Error(`tsc -p ${project} ended with ${status ?? "a signal"}`);
}

rmSync(DIST, { recursive: true, force: true });
await compile("tsconfig.build.json");
await compile("tsconfig.cjs.json");
// The root of the package says that .js files are ES modules.
writeFileSync(join(CJS, "package.json"), `${JSON.stringify({ type: "commonjs", sideEffects: false })}\n`);
copyFileSync(join(ROOT, "infra/here.cjs"), join(CJS, "infra/here.cjs"));
chmodSync(join(DIST, "bin/holdfast.js"), 0o755);
await bundleFunction(join(CJS, "infra/function"));
