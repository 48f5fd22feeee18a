/** `npm run bench` with mistyped names. No test asserts what it measures. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";

it("tells in one line which benchmarks there are, with status 2", async () => {
  const bench = promisify(execFile)(process.execPath, ["--import", "tsx", "bench/main.ts", "locks", "latency"], { cwd: ROOT });
  await expect(bench).rejects.toMatchObject({
    code: 2,
    stdout: "",
    stderr: 'bench: there is no "latency", only schemas and locks and transports and weight and costs and crowd and memory and leases\n',
  });
});
