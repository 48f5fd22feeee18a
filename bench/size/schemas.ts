/**
 * The cost of a library for message schemas at a cold start: the table of docs/decisions/001. Each candidate defines
 * the same schema, in its form with the smallest bundle, and creates JSON Schema from it. Needs npm.
 */
import { build } from "esbuild";
import { execFile } from "node:child_process";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Report } from "../report/report.js";
import { markdownTable, median, milliseconds } from "../report/table.js";

const run = promisify(execFile);

/** The number of imports of each candidate. The candidates alternate, and each import has its own process. */
const IMPORTS = 9;
const PACKAGES = { valibot: "1.5.0", "@valibot/to-json-schema": "1.8.0", zod: "4.6.7", typebox: "1.4.3" };
const ZOD_ENDS = `
  export const accepts = (value) => Body.safeParse(value).success;
  export const document = () => z.toJSONSchema(Body);`;

interface Candidate {
  readonly title: string;
  /** A module that exports `accepts(value)`, which finds the errors of a value, and `document()`. */
  readonly source: string;
}

const CANDIDATES: readonly Candidate[] = [
  {
    title: "valibot 1.5.0 + to-json-schema 1.8.0",
    source: `
      import * as v from "valibot";
      import { toJsonSchema } from "@valibot/to-json-schema";
      const Body = v.strictObject({
        key: v.pipe(v.string(), v.regex(/^[A-Za-z0-9._:~-]{1,200}$/)),
        leaseMs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1000), v.maxValue(86400000))),
        owner: v.optional(v.pipe(v.string(), v.maxLength(256))),
        mode: v.optional(v.picklist(["exclusive", "shared"])),
      });
      export const accepts = (value) => v.safeParse(Body, value).success;
      export const document = () => toJsonSchema(Body, { target: "draft-2020-12" });`,
  },
  {
    title: "zod/mini 4.6.7",
    source: `
      import * as z from "zod/mini";
      const Body = z.strictObject({
        key: z.string().check(z.regex(/^[A-Za-z0-9._:~-]{1,200}$/)),
        leaseMs: z.optional(z.int().check(z.minimum(1000), z.maximum(86400000))),
        owner: z.optional(z.string().check(z.maxLength(256))),
        mode: z.optional(z.enum(["exclusive", "shared"])),
      });${ZOD_ENDS}`,
  },
  {
    title: "zod 4.6.7",
    source: `
      import * as z from "zod";
      const Body = z.strictObject({
        key: z.string().regex(/^[A-Za-z0-9._:~-]{1,200}$/),
        leaseMs: z.int().min(1000).max(86400000).optional(),
        owner: z.string().max(256).optional(),
        mode: z.enum(["exclusive", "shared"]).optional(),
      });${ZOD_ENDS}`,
  },
  {
    title: "typebox 1.4.3 with Check and Errors",
    source: `
      import * as t from "typebox";
      import { Check, Errors } from "typebox/value";
      const Body = t.Object({
        key: t.String({ pattern: "^[A-Za-z0-9._:~-]{1,200}$" }),
        leaseMs: t.Optional(t.Integer({ minimum: 1000, maximum: 86400000 })),
        owner: t.Optional(t.String({ maxLength: 256 })),
        mode: t.Optional(t.Enum(["exclusive", "shared"])),
      }, { additionalProperties: false });
      export const accepts = (value) => Check(Body, value) || Errors(Body, value).length === 0;
      export const document = () => Body;`,
  },
];

/** Values that every candidate must judge alike; otherwise the schemas differ. */
const VALUES: readonly (readonly [value: object, accepted: boolean])[] = [
  [{ key: "ORDER_1231" }, true],
  [{ key: "ORDER_1231", leaseMs: 30_000, owner: "checkout-7", mode: "shared" }, true],
  [{}, false],
  [{ key: "a/b" }, false],
  [{ key: "a", leaseMs: 999 }, false],
  [{ key: "a", leaseMs: 86_400_001 }, false],
  [{ key: "a", leaseMs: 1000.5 }, false],
  [{ key: "a", owner: "o".repeat(257) }, false],
  [{ key: "a", mode: "both" }, false],
  [{ key: "a", other: 1 }, false],
];

/** Returns the table. @throws Error if npm can't install the candidates, or one of them has another schema. */
export async function schemas(): Promise<Report> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-schemas-"));
  try {
    await install(directory);
    const bundles = [];
    for (const [at, { title, source }] of CANDIDATES.entries()) {
      const file = await bundle(source, directory, join(directory, `${at}.mjs`));
      await check(title, file);
      bundles.push({ title, file, bytes: (await stat(file)).size, importsMs: [] as number[] });
    }
    for (let round = 0; round < IMPORTS; round++) for (const { file, importsMs } of bundles) importsMs.push(await importMs(file));
    const rows = bundles.map(({ title, bytes, importsMs }) => [title, `${(bytes / 1024).toFixed(0)} KB`, milliseconds(median(importsMs))]);
    return { tables: [markdownTable([["", "bundle", "import, median"], ...rows])] };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function install(directory: string): Promise<void> {
  await writeFile(join(directory, "package.json"), JSON.stringify({ private: true, type: "module", dependencies: PACKAGES }));
  const options = ["--prefix", directory, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"];
  try {
    await run("npm", ["install", ...options], { cwd: directory });
  } catch (error) {
    const { stderr = "" } = error as { readonly stderr?: string };
    const reason = /^npm error code (\S+)$/m.exec(stderr)?.[1] ?? String(error);
    throw new Error(`npm can't install the candidates: ${reason}`, { cause: error });
  }
}

/** Bundles as for the function: one minified module, the packages' ES modules preferred to CommonJS. */
async function bundle(source: string, directory: string, outfile: string): Promise<string> {
  await build({
    stdin: { contents: source, resolveDir: directory },
    outfile,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "node",
    target: "node20",
    mainFields: ["module", "main"],
  });
  return outfile;
}

async function check(title: string, file: string): Promise<void> {
  const { accepts, document } = (await import(file)) as { accepts(value: object): boolean; document(): { readonly required?: unknown } };
  const wrong = VALUES.find(([value, accepted]) => accepts(value) !== accepted);
  if (wrong) throw new Error(`${title} does not ${wrong[1] ? "accept" : "refuse"} ${JSON.stringify(wrong[0])}`);
  if (JSON.stringify(document().required) !== '["key"]') throw new Error(`${title} makes another JSON Schema`);
}

/** The time that a fresh process takes to import it. */
async function importMs(file: string): Promise<number> {
  const program = `const began = performance.now(); await import(${JSON.stringify(file)}); console.log(performance.now() - began)`;
  return Number((await run(process.execPath, ["--input-type=module", "--eval", program])).stdout);
}
