/**
 * The client over HTTP in runtimes other than Node, each a real one from npm: Cloudflare's workerd with the behaviour of an old and of a new
 * date, and Deno. Regressions: no request worked in workerd, which refuses `redirect: "error"`; in Deno, a refused connection took the
 * whole wait. A runtime that isn't installed is NOT RUN, and the report says so.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { ROOT } from "../tidy/tree.js";

const SEEN = {
  ...{ isHeld: true, refused: null, ended: "released", isNext: true, holder: "alice", runs: ["done", "done", true] },
  nobody: { code: "not-configured", definite: true, isNamed: true },
};
/** The native binary: the command in node_modules/.bin is a wrapper that passes no descriptor on. */
const WORKERD = join(ROOT, `node_modules/@cloudflare/workerd-${process.platform}-${process.arch.replace("x64", "64")}/bin/workerd`);
const DENO = join(ROOT, "node_modules/.bin/deno");
const missing = (file: string): string => (existsSync(file) ? "" : `NOT RUN, since ${file} is not installed: `);

let table: FreshTable;
let directory: string;
const gateways: Gateway[] = [];
beforeAll(async () => {
  table = await freshTable();
  directory = await mkdtemp(join(tmpdir(), "holdfast-runtimes-"));
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  table.client.destroy();
  await rm(directory, { recursive: true });
});

/** Returns the URL of a service with keys of its own, and one where nobody listens. */
async function urls(): Promise<readonly [url: string, nobodysUrl: string]> {
  const { env } = await freshTable();
  const gateway = await startGateway({ handler: compose(env, { log: () => undefined }), port: 0 });
  gateways.push(gateway);
  const left = createServer().listen(0, "127.0.0.1");
  await once(left, "listening");
  const { port } = left.address() as AddressInfo;
  left.close();
  return [gateway.url, `http://127.0.0.1:${port}`];
}

/** Bundles the program of the runtimes, with these lines around it. */
async function bundled(file: string, lines: string): Promise<string> {
  const outfile = join(directory, file);
  const contents = `import { used } from "./test/package/programs/in-a-runtime.js";\n${lines}`;
  await build({
    stdin: { contents, resolveDir: ROOT, loader: "ts" },
    ...{ bundle: true, format: "esm", platform: "neutral", target: "es2022", external: ["node:*", "@aws-sdk/*"], outfile },
  });
  return outfile;
}

const WORKER = `export default {
  async fetch({ url }) {
    const { searchParams } = new URL(url);
    return Response.json(await used(searchParams.get("url"), searchParams.get("nobody"), 2000).catch((error) => String(error.stack)));
  },
};`;

const WITHOUT_PERMISSIONS = `
import { createLockClient } from "./lib/index.js";
import { createLockClient as onTable } from "./lib/dynamodb.js";
import { sigv4 } from "./lib/sigv4.js";
const [url, { credentials: { accessKeyId, secretAccessKey }, ...where }] = [Deno.args[0], JSON.parse(Deno.args[1])];
const credentials = { accessKeyId, secretAccessKey };
const { region } = where;
const clients = {
  onTable: () => onTable({ ...where, credentials }),
  signed: () => createLockClient({ url, sign: sigv4({ credentials, region }) }),
  unsigned: () => createLockClient({ url, sign: sigv4({ region }) }),
  atNowhere: () => onTable(where),
};
const result = {};
for (const [name, open] of Object.entries(clients)) {
  const options = { waitMs: 5000, whenUnavailable: "proceed" };
  result[name] = await Promise.resolve().then(() => open().withLock(name, options, () => "done")).catch(({ code }) => code);
}
console.log(JSON.stringify(result));`;

it.skipIf(missing(WORKERD) !== "").each([
  ["2023-12-01", '"nodejs_compat"'],
  ["2026-11-01", ""],
])(`${missing(WORKERD)}is used in workerd, with the behaviour of %s`, async (date, flags) => {
  const [url, nobodysUrl] = await urls();
  await bundled("worker.js", WORKER);
  const config = join(directory, `${date}.capnp`);
  await writeFile(
    config,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "loopback", network = (allow = ["private"]))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "${date}", compatibilityFlags = [${flags}], globalOutbound = "loopback"
);`,
  );
  const child = spawn(WORKERD, ["serve", "--control-fd=3", config], { stdio: ["ignore", "ignore", "inherit", "pipe"] });
  try {
    const [line] = (await once(createInterface({ input: child.stdio[3] as Readable }), "line")) as [string];
    const { port } = JSON.parse(line) as { readonly port: number };
    const query = new URLSearchParams({ url, nobody: nobodysUrl });
    const response = await fetch(`http://127.0.0.1:${port}/?${query.toString()}`);
    const { nobody, ...seen } = (await response.json()) as typeof SEEN;
    expect(seen).toEqual({ ...SEEN, nobody: undefined });
    // workerd doesn't say why a connection failed, so the wait goes on.
    expect(nobody.code).toBe("unavailable");
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

it.skipIf(missing(DENO) !== "")(`${missing(DENO)}is used in Deno, where a refused connection ends the wait`, async () => {
  const program = await bundled("deno.mjs", "console.log(JSON.stringify(await used(Deno.args[0], Deno.args[1])));");
  const { stdout } = await promisify(execFile)(DENO, ["run", "--no-config", "--allow-all", program, ...(await urls())]);
  expect(JSON.parse(stdout)).toEqual(SEEN);
});

it.skipIf(missing(DENO) !== "").each([
  // What is given suffices without the environment, and what is missing is told by its name.
  ["--allow-net", { onTable: "done", signed: "done", unsigned: "not-configured", atNowhere: "not-configured" }],
  // No permission to send is no outage: the work doesn't proceed past it.
  ["--no-npm", { onTable: "not-configured", signed: "not-configured", unsigned: "not-configured", atNowhere: "not-configured" }],
])(`${missing(DENO)}in Deno a missing permission is no outage: %s`, async (permission, seen) => {
  const program = await bundled(`${permission}.mjs`, WITHOUT_PERMISSIONS);
  const [url] = await urls();
  const args = ["run", "--no-config", "--no-prompt", permission, program, url, JSON.stringify(table.place)];
  const { stdout } = await promisify(execFile)(DENO, args);
  expect(JSON.parse(stdout)).toEqual(seen);
});
