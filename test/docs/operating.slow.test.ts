/** "Operating": the runbook's commands, run against `npm start`. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLockClient } from "../../lib/index.js";
import { readPage } from "./generated.js";
import type { NpmStart } from "./npm-start.js";
import { shellIn } from "./readme.js";
import { npmStart, plainEnvironment } from "./npm-start.js";

const PAGE = readPage("docs/operating.md");
const HAS_CURL = ["curl", "bash"].every((command) => spawnSync(command, ["--version"]).status === 0);

describe.runIf(HAS_CURL)("the runbook's commands", () => {
  let service: NpmStart;
  const printed = new Map<string, string>();
  /** The shell blocks that need no AWS account, in order. */
  const lines = [...PAGE.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block = ""]) => shellIn(block.trimEnd()));
  const asks = lines.flatMap((line, at) => (line.startsWith("ask ") ? [{ line, comment: lines[at - 1] ?? "" }] : []));

  beforeAll(async () => {
    service = await npmStart();
    const locks = createLockClient({ url: service.url });
    await locks.runOnce("REFUND_12", () => ({ refund: "re_1" }));
    for (const owner of ["checkout-6", "checkout-7", "checkout-8"])
      await locks.acquire("ORDER_1231", { owner, limit: 3, heartbeat: false, leaseMs: 600_000 });
    const end = "\n---end of the line---\n";
    const script = lines.map((line) =>
      line.startsWith("ask ") ? `${line} -w '\\n%{http_code}'\nprintf '%s' '${end}'` : line.replace("http://127.0.0.1:4653", service.url),
    );
    const options = { env: plainEnvironment({}) };
    const { stdout } = await promisify(execFile)("bash", ["-c", ["set -euo pipefail", ...script].join("\n")], options);
    for (const [at, text] of stdout.split(end).slice(0, -1).entries()) printed.set(asks[at]!.line, text);
  });
  afterAll(() => service.kill());

  const answerOf = (line: string): { readonly status: number; readonly body: Record<string, unknown> } => {
    const [, body = "", status] = /^([\s\S]*)\n(\d{3})$/.exec(printed.get(line) ?? "") ?? [];
    return { status: Number(status), body: JSON.parse(body) as Record<string, unknown> };
  };

  it.each(asks)("are answered as the comment above says: $comment", ({ line, comment }) => {
    const [, status] = /^# (\d{3})/.exec(comment) ?? [];
    expect(answerOf(line).status, printed.get(line)).toBe(Number(status));
  });

  it("break a hold by draining, and then by force", () => {
    const breaks = asks.filter(({ line }) => line.includes("/break")).map(({ line }) => answerOf(line));
    expect(breaks.map(({ status }) => status)).toEqual([202, 200]);
    expect(breaks[0]!.body["breakInMs"]).toBeGreaterThan(500_000);
    expect(breaks[1]!.body).toEqual({ breakInMs: 0 });
  });

  it("leave the other permits to their holders, and the run to be run again", async () => {
    const locks = createLockClient({ url: service.url });
    const { holders } = await locks.inspect("ORDER_1231");
    expect(holders.map(({ owner }) => owner)).toEqual(["checkout-6", "checkout-8"]);
    expect(await locks.runOnce("REFUND_12", () => 2)).toMatchObject({ attempt: 1, replayed: false });
  });
});
