/** The published package, as users get it: packed once, installed into empty folders, loaded, type-checked, weighed. */
import { cp, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { BYTES_MAX } from "../../bench/size/limits.js";
import { manPage } from "../../bin/man.js";
import { freshTable } from "../support/engine.js";
import { ROOT } from "../tidy/tree.js";
import { describeFrameworks } from "./frameworks.js";
import { describeLowestPeers } from "./lowest-peers.js";
import { describeModuleSystems } from "./module-systems.js";
import { ENTRIES, link, MANIFEST, Packed, run, typeErrors, typesOf } from "./project.js";

/** Entry points that need only the package itself. */
const BARE = ["holdfast", "holdfast/testing", "holdfast/middy", "holdfast/sigv4"];
/** Entry points that need only the package itself to run; their types are those of node:http, or of a peer. */
const UNTYPED = ["dynamodb", "express", "fastify", "hono", "nest", "durable"].map((entry) => `holdfast/${entry}`);

let packed: Packed;
/** A project with the package and its dependencies, and nothing else. */
let project: string;
/** The same with the optional peers. */
let peered: string;

beforeAll(async () => {
  packed = await Packed.pack();
  project = await packed.project("bare", "module");
  peered = join(packed.folder, "peered");
  await cp(project, peered, { recursive: true, verbatimSymlinks: true });
  await link(peered, [...Object.keys(MANIFEST.peerDependencies), "@types/node"]);
});

afterAll(() => packed.remove());

const importing = (entries: readonly string[]): readonly string[] => [
  "--input-type=module",
  "-e",
  `for (const entry of ${JSON.stringify(entries)}) console.log(entry, Object.keys(await import(entry)).length > 0);`,
];

describe("the package", () => {
  it("has what is run and its types, and no source, test or map of ours, and of the pages the skill alone", () => {
    const built =
      /^dist\/(?:(?:lib|lambda|infra\/local|console|bin)\/.*\.js|(?:cjs\/)?(?:lib\/[\w-]+|lambda\/index)\.d\.ts|cjs\/(?:lib|lambda|infra)\/.*\.d\.ts)$/;
    const loaded = /^dist\/cjs\/(?:(?:lib|infra)\/[\w-]+|lib\/shared\/[\w-]+|lambda\/index)\.js$/;
    const odd = packed.files.filter((path) => !built.test(path) && !loaded.test(path));
    const page = ["console.css", "icon.svg", "index.html", "licences.txt"].map((file) => `dist/console/page/${file}`);
    const template = ["console.zip", "function.zip", "holdfast-in-region.template.json", "holdfast.template.json"].map(
      (file) => `dist/template/${file}`,
    );
    const root = ["CHANGELOG.md", "LICENSE", "README.md"];
    const rest = [
      "dist/cjs/infra/here.cjs",
      "dist/cjs/package.json",
      "dist/holdfast.1",
      ...template,
      "docs/skill/SKILL.md",
      "package.json",
    ];
    expect(odd.sort()).toEqual([...root, ...page, ...rest].sort());
  });

  // npm puts a page where man finds it only if it is in a list.
  it("has the manual page of its command line, as that is", async () => {
    const page = await readFile(join(project, "node_modules/holdfast", MANIFEST.man[0]), "utf8");
    expect(page).toBe(manPage(MANIFEST.version));
  });

  it(`has at most ${BYTES_MAX.installed / 1e6} MB when it is installed`, async () => {
    const sizes = packed.files.map(async (path) => (await stat(join(project, "node_modules/holdfast", path))).size);
    expect((await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(BYTES_MAX.installed);
  });

  it("runs nothing when it is installed", () => {
    expect(Object.keys(MANIFEST.scripts).filter((name) => /^(?:pre|post)?install$|^prepare$/.test(name))).toEqual([]);
  });

  it("brings nothing with it that only the repository needs, and every peer is optional", () => {
    expect(MANIFEST.optionalDependencies).toBeUndefined();
    for (const peer of Object.keys(MANIFEST.peerDependencies))
      expect(MANIFEST.peerDependenciesMeta[peer], peer).toEqual({ optional: true });
  });

  it("in an empty folder, with nothing else installed, gives a client", async () => {
    const { stdout, stderr } = await run(project, process.execPath, importing([...BARE, ...UNTYPED]));
    expect([stderr, stdout]).toEqual(["", [...BARE, ...UNTYPED].map((entry) => `${entry} true\n`).join("")]);
  });

  it.each(ENTRIES.filter((entry) => !BARE.includes(entry) && !UNTYPED.includes(entry)))(
    "in that folder, says which packages %s needs",
    async (entry) => {
      const { stdout, stderr } = await run(project, process.execPath, ["-e", `require(${JSON.stringify(entry)})`]);
      expect([stdout, stderr]).toEqual(["", expect.stringMatching(`Error: ${entry} needs the package (\\S+): npm install .*\\1`)]);
    },
  );

  it("in that folder, locks on a table without the AWS SDK, and says for which settings it needs it", async () => {
    const { tableName, client } = await freshTable();
    client.destroy();
    const program = `
      import { createLockClient } from "holdfast/dynamodb";
      const place = { region: "us-east-1", credentials: { accessKeyId: "a", secretAccessKey: "b" } };
      const locks = createLockClient({ ...place, endpoint: process.env.ENGINE });
      console.log(await locks.withLock("ORDER_1231", ({ fencingToken }) => fencingToken > 0));
      console.log((await createLockClient(place).tryAcquire("ORDER_1231").catch((error) => error)).message);`;
    const env = { HOLDFAST_TABLE: tableName, ENGINE: inject("engineEndpoint") };
    const { stdout, stderr } = await run(project, process.execPath, ["--input-type=module", "-e", program], env);
    expect([stderr, stdout.split("\n")[0]]).toEqual(["", "true"]);
    expect(stdout).toContain("the AWS SDK could not be loaded, and is needed because a profile may name the endpoint: npm install");
  });

  it.each([
    ["holdfast", 2],
    ["holdfast/dynamodb", 8],
  ])("in a folder with the peers, %s loads at most %d files and nothing of the AWS SDK", async (entry, most) => {
    const program = `require("${entry}"); console.log(JSON.stringify(Object.keys(require.cache)))`;
    const { stdout } = await run(peered, process.execPath, ["-e", program]);
    const files = JSON.parse(stdout) as readonly string[];
    expect(files.length).toBeLessThanOrEqual(most);
    expect(files.filter((file) => /@aws-sdk|@smithy/.test(file))).toEqual([]);
  });

  it.each([
    ["the environment's keys, without a file of the AWS SDK", { AWS_PROFILE: "" }, "ofEnvironment", "0"],
    ["control: the keys of a profile that is named, with many", { AWS_PROFILE: "shop" }, "ofProfile", expect.stringMatching(/^[1-9]\d+$/)],
  ])("in that folder, signs with %s", async (_which, env, keyId, files) => {
    await writeFile(join(peered, "credentials"), "[shop]\naws_access_key_id = ofProfile\naws_secret_access_key = b\n");
    const program = `
      const { sigv4 } = require("holdfast/sigv4");
      sigv4({ region: "eu-west-1" })({ method: "GET", url: "https://api.example/v1/health", headers: {} }).then(({ authorization }) => {
        const ofSdk = Object.keys(require.cache).filter((file) => /@aws-sdk|@smithy/.test(file));
        console.log(/Credential=(\\w+)/.exec(authorization)[1], ofSdk.length);
      });`;
    const keys = { AWS_ACCESS_KEY_ID: "ofEnvironment", AWS_SECRET_ACCESS_KEY: "b" };
    const settings = { ...keys, AWS_CONFIG_FILE: "none", AWS_SHARED_CREDENTIALS_FILE: "credentials", ...env };
    const { stdout } = await run(peered, process.execPath, ["-e", program], settings);
    expect(stdout.trim().split(" ")).toEqual([keyId, files]);
  });

  it(`in that folder, is bundled with middy and sigv4 in at most ${BYTES_MAX.handler / 1000} KB, with the chain of providers apart`, async () => {
    const contents = `
      import { createLockClient } from "holdfast";
      import { lockMiddleware } from "holdfast/middy";
      import { sigv4 } from "holdfast/sigv4";
      export const middleware = lockMiddleware({ locks: createLockClient({ sign: sigv4() }), key: () => "REPORT" });`;
    const { metafile } = await build({
      stdin: { contents, resolveDir: peered },
      ...{ bundle: true, splitting: true, minify: true, format: "esm", platform: "node", mainFields: ["module", "main"] },
      ...{ outdir: peered, write: false, metafile: true },
    });
    const [entry] = Object.values(metafile.outputs).filter(({ entryPoint }) => entryPoint === "<stdin>");
    const others = entry!.imports.filter(({ external }) => external !== true);
    const [atOnce, later] = [
      others.filter(({ kind }) => kind === "import-statement"),
      others.filter(({ kind }) => kind === "dynamic-import"),
    ];
    const bytes = [entry!, ...atOnce.map(({ path }) => metafile.outputs[path]!)].map((output) => output.bytes);
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(BYTES_MAX.handler);
    const pathOf = (output: string): string | undefined => metafile.outputs[output]?.entryPoint?.replace(/^.*node_modules\//, "");
    expect(later.map(({ path }) => pathOf(path)).sort()).toEqual([
      expect.stringMatching(/^@aws-sdk\/credential-provider-node\//) as string,
      "holdfast/dist/lib/client/calls/limit-writes.js",
      "holdfast/dist/lib/client/wire/doors.js",
    ]);
    expect(Object.keys(entry!.inputs).filter((input) => /@aws-sdk|@smithy/.test(input))).toEqual([]);
  });

  it("in that folder, in a bundle with the AWS SDK outside, imports it on use alone", async () => {
    const contents = ["dynamodb", "sigv4", "lambda"].map((entry) => `export * as ${entry} from "holdfast/${entry}";`).join("\n");
    const { metafile } = await build({
      stdin: { contents, resolveDir: peered },
      ...{ bundle: true, format: "esm", platform: "node", mainFields: ["module", "main"], external: ["@aws-sdk/*"] },
      ...{ outfile: join(peered, "outside.mjs"), write: false, metafile: true },
    });
    const ofSdk = Object.values(metafile.outputs)
      .flatMap(({ imports }) => imports)
      .filter(({ path }) => path.startsWith("@aws-sdk/"));
    expect(ofSdk.map(({ kind, path }) => `${kind} ${path}`).sort()).toEqual(
      ["client-dynamodb", "credential-provider-node", "lib-dynamodb"].map((name) => `dynamic-import @aws-sdk/${name}`),
    );
  });

  it.each(ENTRIES)("says that %s needs a newer Node", async (entry) => {
    const old = `Object.defineProperty(process.versions, "node", { value: "18.20.8" }); require(${JSON.stringify(entry)})`;
    const { stderr } = await run(peered, process.execPath, ["-e", old]);
    expect(stderr).toContain(`Error: ${entry} needs Node 20 or newer, and this is 18.20.8`);
  });

  it("in that folder, serves the API for the time of a command", async () => {
    const command = ["holdfast", "lock", "ORDER_1231", "--", "node", "-p", "process.env.HOLDFAST_KEY"];
    const { stdout, stderr } = await run(project, "npx", ["--no", "holdfast", "dev", "--", "npx", "--no", ...command]);
    expect([stdout, stderr.replaceAll(/^npm warn Unknown .*\n/gm, "")]).toEqual(["ORDER_1231\n", ""]);
  });

  it("in a folder with the peers, every entry is imported", async () => {
    const { stdout } = await run(peered, process.execPath, importing(ENTRIES));
    expect(stdout).toBe(ENTRIES.map((entry) => `${entry} true\n`).join(""));
  });

  it.each([
    ["nodenext", ["es2022", "dom"], true],
    ["bundler", ["es2022", "dom"], true],
    ["nodenext", ["es2022", "dom"], false],
  ])(
    "in that folder, has types under %s, with the libraries %j, which don't have disposables; skipLibCheck: %s",
    async (resolution, lib, skipLibCheck) => {
      const source = [
        ...typesOf(BARE),
        'import { createLockClient, key } from "holdfast";',
        'const locks = createLockClient({ url: "http://127.0.0.1:8787" });',
        'export const token: Promise<number> = locks.withLock(key("ORDER", 1), (lease) => lease.fencingToken);',
        "export async function ended(): Promise<void> { await locks[Symbol.asyncDispose](); }",
        "// @ts-expect-error -- there is no such option",
        'export const wrong = locks.acquire("k", { leaseSeconds: 3 });',
      ].join("\n");
      const module = resolution === "bundler" ? "esnext" : "nodenext";
      expect(await typeErrors(project, source, { module, moduleResolution: resolution, lib, skipLibCheck })).toBe("");
    },
  );

  it("in a folder with the peers, has types of every entry", async () => {
    const options = {
      module: "nodenext",
      moduleResolution: "nodenext",
      lib: ["es2022", "dom", "esnext.disposable"],
      types: ["node"],
      skipLibCheck: false,
      exactOptionalPropertyTypes: false, // The CDK's own types don't pass it.
    };
    expect(await typeErrors(peered, typesOf(ENTRIES).join("\n"), options)).toBe("");
  });

  it.skipIf(process.platform === "win32")("in a clone, or linked to one, has a command that may be run", async () => {
    const { stdout } = await run(packed.folder, join(ROOT, MANIFEST.bin["holdfast"]!), ["--version"]);
    expect(stdout).toBe(`${MANIFEST.version}\n`);
  });
});

describeModuleSystems(() => packed);
describeLowestPeers(() => packed);
describeFrameworks(() => packed);

describe("the client's weight", () => {
  const gzippedBytes = async (contents: string): Promise<number> => {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: project },
      bundle: true,
      minify: true,
      format: "esm",
      platform: "neutral",
      mainFields: ["module", "main"],
      // Only a client of several URLs loads the first, and one that charges or shuts a limit the second.
      external: ["node:*", "*/client/wire/doors.js", "*/limit-writes.js"],
      target: "es2022",
      write: false,
    });
    return gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
  };

  it(`over HTTP, all that createLockClient can do, is at most ${BYTES_MAX.client / 1000} KB gzipped`, async () => {
    expect(await gzippedBytes('export { createLockClient } from "holdfast";')).toBeLessThanOrEqual(BYTES_MAX.client);
  });

  it("is paid for what is imported: a key alone is a small part of it", async () => {
    expect(await gzippedBytes('export { key } from "holdfast";')).toBeLessThanOrEqual(1_600);
  });
});
