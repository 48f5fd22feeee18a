/** The framework example that its README serves: the command, then the three requests, each twice. */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose, policyOf } from "../../lambda/compose.js";
import { createMemoryStore } from "../support/memory-store.js";
import { plainEnvironment } from "../docs/npm-start.js";
import { shellIn } from "../docs/readme.js";
import { ROOT } from "../tidy/tree.js";

const HAS_CURL = ["curl", "bash"].every((command) => spawnSync(command, ["--version"]).status === 0);
const README = readFileSync(join(ROOT, "examples/frameworks/README.md"), "utf8");
const [COMMAND = "", CURLS = ""] = [...README.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block.trim());
const [, PROGRAM = ""] = /^HOLDFAST_URL=http:\/\/127\.0\.0\.1:4653 npx tsx (\S+)$/.exec(COMMAND) ?? [];
const README_URL = "http://127.0.0.1:3000";
/** Enough to start a process on a loaded machine. */
const TIMEOUT_MS = 60_000;

let gateway: Gateway;
let server: ChildProcess;
let url: string;

/** Starts the program on a free port, and returns its address once it serves. */
async function serve(): Promise<string> {
  const env = plainEnvironment({ HOLDFAST_URL: gateway.url, PORT: "0" });
  server = spawn(process.execPath, ["--import", "tsx", PROGRAM], { cwd: ROOT, env, stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  server.stdout!.setEncoding("utf8").on("data", (text: string) => (printed += text));
  await vi.waitFor(() => expect(printed).toMatch(/^orders at http:\S+\n$/), { timeout: TIMEOUT_MS });
  return printed.trim().replace("orders at ", "");
}

async function stop(): Promise<void> {
  const ended = once(server, "exit");
  server.kill();
  await ended;
}

beforeAll(async () => {
  gateway = await startGateway({
    handler: compose({}, { store: createMemoryStore({ policy: policyOf({}) }), log: () => undefined }),
    port: 0,
  });
  url = await serve();
});
afterAll(async () => {
  await stop();
  await gateway.close();
});

/** Each curl of the README with the comment above it. */
const curls = shellIn(CURLS).flatMap((line, at, lines) => (line.startsWith("curl ") ? [{ line, comment: lines[at - 1] ?? "" }] : []));

async function pasted(line: string): Promise<string> {
  const { stdout } = await promisify(execFile)("bash", ["-c", line.replace(README_URL, url)], { env: plainEnvironment({}) });
  return stdout;
}

describe.runIf(HAS_CURL)("examples/frameworks, served", () => {
  it.each(curls)("answers as said above it, and the same again: $comment", async ({ line, comment }) => {
    const [, status] = /^# (\d{3})/.exec(comment) ?? [];
    const [first, again] = [await pasted(line), await pasted(line)];
    for (const answer of [first, again]) expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(/^idempotent-replayed: true\r$/im.test(again)).toBe(comment.includes("Idempotent-Replayed: true"));
    expect(first).not.toMatch(/^idempotent-replayed/im);
  });

  it("started again, still answers with the order that it never made", async () => {
    expect(curls).toHaveLength(3);
    await stop();
    url = await serve();
    const answer = await pasted(curls[0]!.line);
    expect(answer).toMatch(/^idempotent-replayed: true\r$/im);
    expect(answer).toContain('{"id":1,"product":"camera"}');
  });
});
