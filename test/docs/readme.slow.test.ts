/**
 * The commands and snippets of the README, and of the pages that it leads to first, give the results that they claim. `npm start` runs
 * once, exactly as written there, and every snippet then runs against it verbatim.
 */
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { execFile, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type BuildOptions, build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineClient, engineEnvironment, engineLocation } from "../../infra/local/engine-client.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { createLockClient } from "../../lib/index.js";
import { ROOT } from "../tidy/tree.js";
import { type NpmStart, npmStart, plainEnvironment } from "./npm-start.js";
import { blocksUnder, blockUnder, docsPage, README, shellIn } from "./readme.js";

const run = promisify(execFile);
const HAS_CURL = ["curl", "bash"].every((command) => spawnSync(command, ["--version"]).status === 0);
const HAS_PYTHON = spawnSync("python3", ["--version"]).status === 0;
const PAGE_URL = "http://127.0.0.1:4653";
const KEY = "ORDER_1231";
/** The README's imports, and the sources that are published under these names. */
const ENTRIES = {
  '"holdfast"': join(ROOT, "lib/index.js"),
  '"holdfast/dynamodb"': join(ROOT, "lib/dynamodb.js"),
  '"holdfast/cdk"': join(ROOT, "infra/index.js"),
};
const OVER_HTTP = docsPage("over-http");
const TITLE = /^# (.*)$/m.exec(README)?.[1] ?? "";
const TITLE_OF = (page: string): string => /^# (.*)$/m.exec(page)?.[1] ?? "";
/** The functions that the first lines call. The first shows that the lock is held meanwhile, the second prints each refund with its idempotency key. */
const FIRST_CALLS = `
async function ship(order: number, signal: AbortSignal): Promise<void> {
  const { holders } = await locks.inspect(key("ORDER", order));
  console.log("shipped by", holders.length, signal.aborted);
}
async function refund(order: number, idempotencyKey: string): Promise<string> {
  console.log("refunds", order, idempotencyKey);
  return "refunded";
}
console.log(value);
`;
const SNIPPETS = {
  first: blockUnder(TITLE, "ts") + FIRST_CALLS,
  handler: blockUnder("Use it", "ts"),
  table: blockUnder(TITLE_OF(docsPage("on-the-table")), "ts", docsPage("on-the-table")),
  locked: blockUnder(TITLE_OF(docsPage("decorators")), "ts", docsPage("decorators")),
  cdk: blockUnder("Into your account", "ts"),
};

let service: NpmStart;
let directory: string;

beforeAll(async () => {
  service = await npmStart();
  // Below node_modules, so that the snippets find their packages and git ignores the snippets.
  const cache = join(ROOT, "node_modules/.cache");
  await mkdir(cache, { recursive: true });
  directory = await mkdtemp(join(cache, "readme-"));
  for (const [name, text] of Object.entries(SNIPPETS)) await writeFile(join(directory, `${name}.mts`), linked(text));
  await writeFile(
    join(directory, "invoked.mts"),
    'import { handler } from "./handler.mjs";\nconsole.log(await handler({ order: 1231 }, { getRemainingTimeInMillis: () => 20_000 }));\n',
  );
  const files = Object.keys(SNIPPETS).map((name) => `${name}.mts`);
  await writeFile(join(directory, "tsconfig.json"), JSON.stringify({ extends: join(ROOT, "tsconfig.json"), files, include: [] }));
});

afterAll(async () => {
  service.kill();
  await rm(directory, { recursive: true, force: true });
});

/** The program, importing the sources of what is published. */
function linked(program: string): string {
  return Object.entries(ENTRIES).reduce((text, [name, file]) => text.replaceAll(`from ${name}`, `from ${JSON.stringify(file)}`), program);
}

/** Runs a snippet to its end. Rejects unless it succeeds. */
async function runSnippet(name: keyof typeof SNIPPETS | "invoked", env: Readonly<Record<string, string>> = { HOLDFAST_URL: service.url }) {
  const file = join(directory, `${name}.mts`);
  return run(process.execPath, ["--import", "tsx", file], { cwd: ROOT, env: plainEnvironment(env) });
}

/** Runs lines of shell one after another, and returns the output of each. */
async function bash(lines: readonly string[]): Promise<readonly string[]> {
  const end = "\n---end of the line---\n";
  const script = lines.map((line) => `${line}\nprintf '%s' '${end}'`).join("\n");
  const { stdout } = await run("bash", ["-c", `set -euo pipefail\n${script}`], { env: plainEnvironment({}) });
  return stdout.split(end).slice(0, -1);
}

const statusOf = (printed: string | undefined): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(printed ?? "")?.[1]);

describe("the README's npm start", () => {
  it("serves, and nothing warns", async () => {
    expect((await fetch(`${service.url}/v1/health?deep=1`)).status).toBe(200);
    expect(service.greeting).not.toMatch(/warn/i);
  });

  it.runIf(HAS_CURL)("prints three curl lines to paste", async () => {
    const lines = service.greeting.split("\n").filter((line) => line.trim().startsWith("curl"));
    expect((await bash(lines)).map(statusOf)).toEqual([201, 200, 204]);
  });
});

/** Runs the shell lines under this heading twice, and returns the output of each curl: the comments say what a repeated line does. */
function curlsUnder(heading: string, before: readonly string[] = []) {
  const lines = [...before, ...shellIn(blockUnder(heading, "sh", OVER_HTTP))];
  const curls = lines.flatMap((line, at) => (line.startsWith("curl ") ? [{ line, comment: lines[at - 1] ?? "" }] : []));
  const printed: string[] = [];
  const play = async (): Promise<void> => {
    if (!HAS_CURL) return;
    const twice = lines.flatMap((line) => (line.startsWith("curl ") ? [line, line] : [line]));
    const all = await bash(twice.map((line) => line.replace(PAGE_URL, service.url)));
    printed.push(...all.filter((_, at) => twice[at]?.startsWith("curl ")));
  };
  return { lines, curls, printed, play };
}

/** Checks that both responses to the curl are as the comment above it says. */
function expectAsSaid(comment: string, at: number, printed: readonly string[]): void {
  const [first = 200, again = first] = (comment.match(/\b\d{3}\b/g) ?? []).map(Number);
  expect([statusOf(printed[2 * at]), statusOf(printed[2 * at + 1])], printed.join("\n")).toEqual([first, again]);
}

describe("a run with curl", () => {
  const variables = shellIn(blockUnder("A lock with curl", "sh", OVER_HTTP)).filter((line) => /^[A-Z]+=/.test(line));
  const { curls, printed, play } = curlsUnder("A run with curl", variables);
  beforeAll(play);

  it.runIf(HAS_CURL).each(curls.map((curl, at) => ({ ...curl, at })))("answers as said above it: $comment", ({ comment, at }) =>
    expectAsSaid(comment, at, printed),
  );
});

describe("a lock with curl", () => {
  const { curls, printed, play } = curlsUnder("A lock with curl");
  beforeAll(play);

  it.runIf(HAS_CURL).each(curls.map((curl, at) => ({ ...curl, at })))("answers as said above it: $comment", ({ comment, at }) =>
    expectAsSaid(comment, at, printed),
  );

  it.runIf(HAS_CURL)("acquires once, shows no leaseId, renews, and releases", () => {
    const [acquired = "", repeated = "", inspected = "", , renewed = "", , ...released] = printed;
    const [, token = "none"] = /"fencingToken":(\d+)/.exec(acquired) ?? [];
    const [, leaseId = "none"] = /"leaseId":"([^"]+)"/.exec(acquired) ?? [];
    expect(acquired).not.toMatch(/^idempotent-replayed:/im);
    expect(repeated).toMatch(/^idempotent-replayed: true\r$/im);
    expect(repeated).toContain(`"fencingToken":${token},`);
    expect(inspected).toContain(`"owner":"checkout-7"`);
    expect(inspected).not.toContain(leaseId);
    expect(renewed).toMatch(/"leaseMs":30000,"remainingMs":(30000|29\d{3}),/);
    expect(released).toEqual(Array(2).fill(expect.stringMatching(/^lease-state: released\r$/im)));
  });
});

describe("the README's snippets", () => {
  it("name no server of their own", () => {
    const programs = [...blocksUnder(TITLE, "ts"), ...Object.values(SNIPPETS)];
    expect(programs.filter((program) => program.includes("127.0.0.1"))).toEqual([]);
  });

  it("have the types that they use", async () => {
    await expect(run("npx", ["tsc", "--noEmit", "-p", directory], { cwd: ROOT })).resolves.toMatchObject({ stdout: "" });
  });

  it("of the first screen hold the lock while they run, and no longer, and run once", async () => {
    const first = await runSnippet("first");
    expect([first.stderr, first.stdout]).toEqual(["", "shipped by 1 false\nrefunds 12 REFUND_12\nrefunded\n"]);
    expect(await createLockClient({ url: service.url }).inspect(KEY)).toMatchObject({ holders: [] });
    expect((await runSnippet("first")).stdout).toBe("shipped by 1 false\nrefunded\n");
  });

  it("of a Lambda handler work under the lock, and hold nothing afterwards", async () => {
    const { stdout, stderr } = await runSnippet("invoked");
    expect(stderr).toBe("");
    const [, token] = /^shipped under token (\d+)\n$/.exec(stdout) ?? [];
    const locks = createLockClient({ url: service.url });
    expect(await locks.inspect(KEY)).toMatchObject({ holders: [], fencingToken: Number(token) });
  });

  it("decorate methods", async () => {
    const { stdout, stderr } = await runSnippet("locked");
    expect([stderr, stdout]).toEqual(["", "order 1231 accepted under held lease order 1231: 4200 cents back\n"]);
  });

  it("decorate methods through esbuild with the target that is named; control: not without one", async () => {
    const [, version = ""] = /esbuild needs `--target=(\w+)`/.exec(docsPage("decorators")) ?? [];
    const built = async (name: string, options: BuildOptions): Promise<{ readonly stdout: string }> => {
      const outfile = join(directory, `${name}.mjs`);
      const entryPoints = [join(directory, "locked.mts")];
      await build({ entryPoints, outfile, bundle: true, platform: "node", format: "esm", logLevel: "silent", ...options });
      return run(process.execPath, [outfile], { cwd: directory, env: plainEnvironment({ HOLDFAST_URL: service.url }) });
    };
    expect((await built("for-node", { target: version })).stdout).toContain("order 1231 accepted under held lease");
    await expect(built("as-it-is", {})).rejects.toThrow("SyntaxError");
  });

  it("write under the token of a lease straight on the table", async ({ skip }) => {
    skip(service.engineEndpoint === "", "records in memory have no table");
    const client = engineClient(service.engineEndpoint);
    const { stderr } = await runSnippet("table", {
      ...engineEnvironment(service.engineEndpoint),
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
    });
    expect(stderr).toBe("");
    const { holders, fencingToken } = await createTableClient({ tableName: "holdfast", ...engineLocation(service.engineEndpoint) }).inspect(
      KEY,
    );
    expect(holders).toEqual([]);
    const { Item } = await client.send(new GetCommand({ TableName: "orders", Key: { id: "1231" }, ConsistentRead: true }));
    expect(Item).toEqual({ id: "1231", status: "PAID", fencingToken });
    client.destroy();
  });
});

describe("the program in Python", () => {
  it.runIf(HAS_PYTHON)("prints what stands below it, and holds nothing afterwards", async () => {
    const heading = "In Python, in 20 lines";
    const env = plainEnvironment({ HOLDFAST_URL: service.url });
    const { stdout } = await run("python3", ["-c", blockUnder(heading, "python", OVER_HTTP)], { env });
    expect(stdout.trim()).toBe(blockUnder(heading, "text", OVER_HTTP));
    expect(await createLockClient({ url: service.url }).inspect(KEY)).toMatchObject({ holders: [] });
  });
});

describe("the programs in Go and Java", () => {
  it.for([
    { name: "Go", language: "go", file: "main.go", command: ["go", "run"], asked: "version" },
    { name: "Java", language: "java", file: "Lock.java", command: ["java"], asked: "--version" },
  ])("in $name prints what stands below it, and holds nothing afterwards", async (one, { skip }) => {
    const [program = "", ...words] = one.command;
    skip(spawnSync(program, [one.asked]).status !== 0, `there is no ${program} on the path`);
    const heading = `In ${one.name}, in 30 lines`;
    const source = join(directory, one.file);
    await writeFile(source, blockUnder(heading, one.language, OVER_HTTP));
    const { stdout } = await run(program, [...words, source], { env: plainEnvironment({ HOLDFAST_URL: service.url }) });
    expect(stdout.trim()).toBe(blockUnder(heading, "text", OVER_HTTP));
    expect(await createLockClient({ url: service.url }).inspect(KEY)).toMatchObject({ holders: [] });
  });
});

describe("Ctrl-C", () => {
  it("ends npm start and all that it started", async () => {
    const { code, stderr } = await service.pressCtrlC();
    expect(code).toBe(0);
    expect(stderr.split("\n").filter((line) => line !== "" && !line.startsWith("npm "))).toEqual([]);
    for (const url of [service.url, service.engineEndpoint].filter((one) => one !== ""))
      await expect(fetch(url)).rejects.toThrow("fetch failed");
  });
});
