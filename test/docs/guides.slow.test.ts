/** The guides for users: their code compiles and prints the output on the page; their links lead to existing files. */
import { readdirSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf, compileErrors } from "./compiled.js";
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

describe("the page about migrating", () => {
  it("has code that compiles; control: a call that there is not does not", () => {
    const blocks = blocksOf(readPage("docs/migrating.md"));
    expect(blocks.length).toBeGreaterThan(4);
    const wrong = blocks.at(-1)!.replace("withLock", "withLocked");
    expect(compileErrors([...blocks, wrong])).toEqual([expect.stringMatching(new RegExp(`^block ${blocks.length + 1}: .*withLocked`))]);
  });
});
