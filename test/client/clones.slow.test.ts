/** Two processes that are restored from one image of memory are two callers, although all that the image has is the same in both. */
import { build } from "esbuild";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type Edit, editedSources } from "../support/edited-sources.js";
import { freshTable } from "../support/engine.js";
import { ROOT } from "../tidy/tree.js";

const run = promisify(execFile);
const RANDOM = "lib/core/random.ts";
/** Bytes that are drawn before they are used. */
const POOL: Edit = [
  "  const bytes = new Uint8Array(count);\n",
  "  const drawn = ((globalThis as any).drawn ??= crypto.getRandomValues(new Uint8Array(4096)));\n" +
    "  const at = ((globalThis as any).at = ((globalThis as any).at ?? 0) + count);\n" +
    "  if (at >= 0) return drawn.slice(at - count, at);\n  const bytes = new Uint8Array(count);\n",
  RANDOM,
];

interface Restored {
  readonly holds: boolean;
  /** The process that did the work of the run, or the code of its refusal. */
  readonly run: { readonly replayed: boolean } | string;
  readonly token: string;
  readonly kept: boolean;
  readonly lostBy?: string;
}

let directory: string;
let gateway: Gateway;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-clones-"));
});
afterAll(() => rm(directory, { recursive: true }));

/** Saves the image of a program with these edits, and returns what two processes did that went on from it at the same time. */
async function cloned(name: string, edits: readonly Edit[] = []): Promise<readonly [Restored, Restored]> {
  const program = join(directory, `${name}.cjs`);
  const image = join(directory, `${name}.blob`);
  await build({
    entryPoints: [join(ROOT, "test/client/clone-program.ts")],
    ...{ bundle: true, format: "cjs", platform: "node", target: "node20", outfile: program, logLevel: "error" },
    plugins: [editedSources([RANDOM], () => ({ name, edits }))],
  });
  await run(process.execPath, ["--snapshot-blob", image, "--build-snapshot", program]);
  const { env } = await freshTable();
  gateway = await startGateway({ handler: compose(env, { log: () => undefined }), port: 0 });
  try {
    const nowMs = String(Date.now());
    const restore = async (): Promise<Restored> => {
      const { stdout } = await run(process.execPath, ["--snapshot-blob", image, gateway.url, nowMs]);
      return JSON.parse(stdout) as Restored;
    };
    return await Promise.all([restore(), restore()]);
  } finally {
    await gateway.close();
  }
}

describe("two processes that are restored from one image", () => {
  it("are two callers: one holds the key, one does the work, and none holds what the image held", async () => {
    const [one, other] = await cloned("as-it-is");
    expect([one.holds, other.holds].sort()).toEqual([false, true]);
    expect([one, other].filter(({ run: ran }) => typeof ran === "object" && !ran.replayed)).toHaveLength(1);
    expect(one.token).not.toBe(other.token);
    expect([one.kept, other.kept, one.lostBy, other.lostBy]).toEqual([false, false, "restored", "restored"]);
  });

  it("control: are one caller to the service, and both hold the key, if bytes are drawn ahead", async () => {
    const [one, other] = await cloned("with-a-pool", [POOL]);
    expect([one.holds, other.holds]).toEqual([true, true]);
    expect(one.token).toBe(other.token);
  });
});
