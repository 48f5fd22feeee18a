/** The guides for users: their code compiles and prints the output on the page; their links lead to existing files. */
import { existsSync, readdirSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LockClient } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { readPage } from "./generated.js";
import { ROOT } from "../tidy/tree.js";
import { compile, guide, pasted, printed, workshop } from "./snippets.js";

const NAMES = [
  "start-here",
  "lease-lost",
  "choosing-keys",
  "waiting",
  "limits",
  "fencing-tokens",
  "heartbeats-and-lambda",
  "shutting-down",
  "durable-functions",
  "step-functions",
  "idempotency",
  "telemetry",
  "testing",
];
const RECIPES = readdirSync(join(ROOT, "docs/recipes")).map((file) => `recipes/${file.replace(/\.md$/, "")}`);
const GUIDES = [...NAMES, ...RECIPES].map(guide);
/** The page on testing quotes parts of an example. The other pages are programs. */
const PROGRAMS = GUIDES.filter(({ name, program }) => name !== "testing" && program !== "");
/** These need a service or an engine, or aren't programs. Each has its own test. */
const RUN_ELSEWHERE = ["start-here", "fencing-tokens", "step-functions", "testing", "recipes/one-deploy"];
const RUN_IN_MEMORY = GUIDES.filter(({ name }) => !RUN_ELSEWHERE.includes(name));

/** Programs whose callers wait for each other. In memory, time stands still until somebody turns the clock. */
const WAITING = ["recipes/limit-concurrency"];

/** The program, with a clock that is turned until it ends. */
function turned(program: string): string {
  const turning = `let isOver = false;
const turn = async () => {
  for (; !isOver; await new Promise((go) => setTimeout(go, 1))) await locks.clock.advance(20);
};
void turn();`;
  return `${program.replace(/^const locks = .*$/m, (line) => `${line}\n${turning}`)}\nisOver = true;\n`;
}

let directory: string;

beforeAll(async () => {
  directory = await workshop();
  await mkdir(join(directory, "recipes"));
  for (const { name, program } of PROGRAMS) await writeFile(join(directory, `${name}.mts`), pasted(program));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe("the guides' code", () => {
  it("has the types that it uses", async () => {
    const forms = PROGRAMS.flatMap(({ name, forms }) => forms.map((code, at) => ({ file: `${name}-form-${at}.mts`, code })));
    expect(forms.length).toBeGreaterThan(2);
    for (const { file, code } of forms) await writeFile(join(directory, file), pasted(code));
    expect(await compile(directory, [...PROGRAMS.map(({ name }) => `${name}.mts`), ...forms.map(({ file }) => file)])).toBe("");
  });

  it("control: a call that there isn't does not compile", async () => {
    await writeFile(
      join(directory, "wrong.mts"),
      pasted('import { createLockClient } from "holdfast";\nawait createLockClient().lock("key");'),
    );
    expect(await compile(directory, ["wrong.mts"])).toContain("Property 'lock' does not exist");
  });

  it.each(RUN_IN_MEMORY)("of $name prints what stands beside it", async ({ name, program, says }) => {
    const file = join(directory, `${name}-in-memory.mts`);
    const inMemory = pasted(program, { inMemory: true });
    await writeFile(file, WAITING.includes(name) ? turned(inMemory) : inMemory);
    expect(says.length).toBeGreaterThan(0);
    expect(await printed(file)).toEqual(says);
  });
});

describe("the guides", () => {
  it.each(GUIDES)("of $name: there is a way on", ({ text }) => {
    expect(text).toMatch(/\]\([\w./-]+\.md/);
  });

  it.each(GUIDES)("of $name: an example comes first, and the page is read in five minutes", ({ text, blocks }) => {
    const [before = ""] = text.split("```");
    expect(blocks("ts").length + blocks("sh").length).toBeGreaterThan(0);
    expect(before.split(" ").length).toBeLessThan(120);
    expect(text.split(" ").length).toBeLessThan(2100);
  });
});

/** Compiles each block as a module of its own, and returns the errors: the block, of which the last is `wrong`, and the message. */
async function errorsIn(name: string, blocks: readonly string[]): Promise<readonly string[]> {
  const files = blocks.map((_block, at) => `${name}-${at === blocks.length - 1 ? "wrong" : at}.mts`);
  for (const [at, block] of blocks.entries()) await writeFile(join(directory, files[at]!), pasted(`${block}\nexport {};\n`));
  const said = await compile(directory, files);
  return [...said.matchAll(/^\S*-(\w+)\.mts\(.*?\): error (.*)$/gm)].map(([, block = "", message = ""]) => `${block}: ${message}`);
}

/** The page's helper of step 1, as a module. */
async function underBothOfThePage() {
  const block = guide("migrating")
    .blocks("ts")
    .find((one) => one.includes("export async function underBoth"))!;
  const { outputText } = ts.transpileModule(block, { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } });
  const file = join(directory, "under-both.mjs");
  await writeFile(file, outputText);
  return (await import(pathToFileURL(file).href)) as { underBoth: UnderBoth };
}

type Node = (step: number, workMs: number) => Promise<string>;
type UnderBoth = (
  oldLock: () => Promise<() => Promise<void>>,
  locks: LockClient,
  options: { key: string; longestMs: number; onFailure: (error: unknown) => void },
  work: () => Promise<string>,
) => Promise<string>;

/** A fleet whose nodes take the locks of their step, and the most of them that worked at once. */
async function fleet() {
  const { underBoth } = await underBothOfThePage();
  const locks = createLockClient();
  const { clock } = locks;
  const passed = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  const told: unknown[] = [];
  let [isTaken, inside, most, failing] = [false, 0, 0, false];
  const oldLock = async () => {
    while (isTaken) await passed(100);
    isTaken = true;
    return () => {
      isTaken = false;
      return failing ? Promise.reject(new Error("the old lock is gone")) : Promise.resolve();
    };
  };
  const node: Node = async (step, workMs) => {
    const work = async (): Promise<string> => {
      most = Math.max(most, ++inside);
      await passed(workMs);
      inside--;
      return "done";
    };
    if (step === 1)
      return underBoth(oldLock, locks, { key: "report", longestMs: 20_000, onFailure: (error) => void told.push(error) }, work);
    if (step === 2) return locks.withLock("report", work);
    const release = await oldLock();
    return work().finally(release);
  };
  const together = async (...steps: readonly number[]) =>
    [await clock.settle(Promise.all(steps.map((step) => node(step, 19_000)))), most] as const;
  return { together, told, failRelease: () => void (failing = true) };
}

describe("the page about migrating", () => {
  it.each([
    ["of steps 0 and 1 work one after the other", [0, 1], 1],
    ["of steps 1 and 2 do too, however long the work of step 2 is", [2, 1], 1],
    ["control: of steps 0 and 2 work at once", [0, 2], 2],
  ])("nodes %s", async (_nodes, steps, atOnce) => {
    const { together } = await fleet();
    expect(await together(...steps)).toEqual([["done", "done"], atOnce]);
  });

  it("work that is done stays done if the old lock can't be released", async () => {
    const { together, told, failRelease } = await fleet();
    failRelease();
    expect([await together(1), told]).toEqual([[["done"], 1], [new Error("the old lock is gone")]]);
  });

  it("has code that compiles; control: a call that there is not does not", async () => {
    const blocks = guide("migrating").blocks("ts");
    expect(blocks.length).toBeGreaterThan(4);
    const wrong = blocks.at(-1)!.replace("withLock", "withLocked");
    expect(await errorsIn("migrating", [...blocks, wrong])).toEqual([expect.stringMatching(/^wrong: .*withLocked/)]);
  });
});

/** The names that the calls of the skill use. */
const NAMED = `
import { createLockClient, key, type InvocationContext, type Lease, type LockClient } from "holdfast";
import { scheduleHandler } from "holdfast/middy";
declare const locks: LockClient, id: string, payload: object, context: InvocationContext, read: () => string, isFresh: () => boolean;
declare const pay: (key: string) => Promise<string>, ship: (lease: Lease) => Promise<void>, lead: (signal: AbortSignal) => Promise<void>;
declare const work: () => Promise<void>, renew: () => string, save: () => Promise<void>;
void [createLockClient, key, scheduleHandler, id, payload, context, read, isFresh, pay, ship, lead, work, renew, save];
`;

describe("the skill for agents", () => {
  const page = readPage("docs/skill/SKILL.md");

  it("has calls that compile; control: an option that there is not does not", async () => {
    const calls = [...page.matchAll(/^\|.*\| `((?:export |const |await )[^`]*)`/gm)].map(([, call = ""]) => call);
    expect(calls.length).toBe(11);
    const wrong = 'scheduleHandler({ locks, name: "nightly", everyMs: 1 }, work)';
    const used = (call: string): string => call.replace(/^(?:const|await using) (\w+)/, (all, name) => `void (() => ${name});\n${all}`);
    const errors = await errorsIn(
      "skill",
      [...calls, wrong].map((call) => `${NAMED}${used(call)};`),
    );
    expect(errors).toEqual([expect.stringMatching(/^wrong: .*everyMs/)]);
  });

  it("has whole addresses, each of a page that there is", () => {
    const links = [...page.matchAll(/\]\(([^)]*)\)/g)].map(([, link = ""]) => link);
    const [, base] = /"homepage": "(.*)#readme"/.exec(readPage("package.json")) ?? [];
    const of = `${base}/blob/main/`;
    expect(links.length).toBeGreaterThan(5);
    expect(links.filter((link) => !link.startsWith(of) || !existsSync(join(ROOT, link.slice(of.length))))).toEqual([]);
  });
});
