/** The address of the locks and the signature of requests: from options, from the environment, or from the host name. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connect, signingRegion } from "../../bin/connection.js";
import { plainEnvironment } from "../docs/npm-start.js";
import { ROOT } from "../tidy/tree.js";
import { endAll, programFile, run, start } from "./holdfast.js";
import { type Service, serve } from "./service.js";

const CREDENTIALS = { AWS_ACCESS_KEY_ID: "AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY: "secret" };

let service: Service;
/** The last `Authorization` header, at a server that isn't a lock service. */
let authorization: string | undefined;
const empty = createServer((request, response) => {
  authorization = request.headers.authorization;
  response.writeHead(200, { "content-type": "application/json" }).end('{"items":[],"namespace":"default"}');
});
let url: string;

beforeAll(async () => {
  service = await serve();
  empty.listen(0, "127.0.0.1");
  await once(empty, "listening");
  url = `http://127.0.0.1:${(empty.address() as AddressInfo).port}`;
});
beforeEach(() => (authorization = undefined));
afterAll(async () => {
  empty.close();
  await endAll();
  await service.close();
});

describe("several services with commas between their URLs", () => {
  const NOBODY = "http://127.0.0.1:9";

  it.each<[what: string, args: readonly string[], env: NodeJS.ProcessEnv]>([
    ["in HOLDFAST_URL", [], { HOLDFAST_URL: "here" }],
    ["in --url", ["--url", "here"], {}],
  ])("are asked one after the other, the first that answers: %s", async (_what, args, env) => {
    const all = `${service.url},${NOBODY}`;
    const at = Object.fromEntries(Object.entries(env).map(([name]) => [name, all]));
    const options = args.map((word) => (word === "here" ? all : word));
    const { status, stdout } = await run(["lock", "k", ...options, "--", "echo", "locked"], at);
    expect([status, stdout]).toEqual([0, "locked\n"]);
    expect((await run(["ls", ...options], at)).status).toBe(0);
  });

  it("are signed for as one is", async () => {
    await run(["ls", "--sign", "--region", "eu-west-1"], { ...CREDENTIALS, HOLDFAST_URL: `${url},${NOBODY}` });
    expect(authorization).toContain("/eu-west-1/execute-api/");
  });
});

describe("requests are signed", () => {
  const EXECUTE_API = "https://a1b2c3.execute-api.eu-central-1.amazonaws.com/prod";

  it.each([
    ["for the host's region to AWS's own hosts", EXECUTE_API, {}, "eu-central-1"],
    ["for the region that is given", EXECUTE_API, { region: "eu-west-1" }, "eu-west-1"],
    ["in China too", "https://a1b2c3.execute-api.cn-north-1.amazonaws.com.cn", {}, "cn-north-1"],
    ["when it is asked for", "https://locks.example.com", { sign: true, region: "eu-west-1" }, "eu-west-1"],
    ["for the environment's region otherwise", "https://locks.example.com", { sign: true }, "of the environment"],
    ["not to other hosts", "https://locks.example.com", {}, undefined],
    ["not to a host that only looks like one", "https://execute-api.eu-central-1.amazonaws.com.example.com", {}, undefined],
    ["not without TLS", EXECUTE_API.replace("https", "http"), {}, undefined],
    ["not when that is said", EXECUTE_API, { sign: false }, undefined],
  ])("%s", (_what, to, options, region) => {
    expect(signingRegion(new URL(to), options)).toBe(region);
  });

  it("with the environment's credentials", async () => {
    const { status } = await run(["ls", "--url", url, "--sign", "--region", "eu-west-1"], CREDENTIALS);
    expect(status).toBe(0);
    expect(authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/execute-api\/aws4_request, /);
    await run(["ls", "--url", url, "--sign"], { ...CREDENTIALS, AWS_REGION: "us-west-2" });
    expect(authorization).toContain("/us-west-2/execute-api/");
  });

  it("not otherwise; a bearer token goes with them if there is one", async () => {
    await run(["ls", "--url", url], CREDENTIALS);
    expect(authorization).toBeUndefined();
    await run(["ls"], { HOLDFAST_URL: url, HOLDFAST_BEARER_TOKEN: "jwt" });
    expect(authorization).toBe("Bearer jwt");
    expect(
      (await run(["--url", "https://x.execute-api.eu-west-1.amazonaws.com", "--sign", "ls"], { HOLDFAST_BEARER_TOKEN: "jwt" })).status,
    ).toBe(64);
  });
});

describe("a bearer token of a file", () => {
  let directory: string;
  let file: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "holdfast-"));
    file = join(directory, "token");
  });
  afterAll(() => rm(directory, { recursive: true }));

  it.each([
    ["the option", { tokenFile: "" }, {}],
    ["the environment", {}, { HOLDFAST_BEARER_TOKEN_FILE: "" }],
  ])("that %s names is read again for each request, so that a hold outlives its token", async (_what, options, env) => {
    const named = <Names extends object>(names: Names): Names =>
      Object.fromEntries(Object.keys(names).map((name) => [name, file])) as Names;
    await writeFile(file, "first\n");
    const locks = await connect({ url, ...named(options) }, named(env));
    await locks.list();
    expect(authorization).toBe("Bearer first");
    await writeFile(file, "second\n");
    await locks.list();
    expect(authorization).toBe("Bearer second");
    await locks.close();
  });

  it("is refused by name where it can't be one", async () => {
    const at = { HOLDFAST_URL: url };
    await writeFile(file, " \n");
    expect(await run(["--token-file", file, "ls"], at)).toMatchObject({
      status: 78,
      stderr: `holdfast: --token-file: ${file} is empty\nIt is the path of a file that has only the token.\n`,
    });
    expect((await run(["ls"], { ...at, HOLDFAST_BEARER_TOKEN_FILE: join(directory, "none") })).stderr).toMatch(
      /^holdfast: HOLDFAST_BEARER_TOKEN_FILE: ENOENT: no such file/,
    );
    const both = { ...at, HOLDFAST_BEARER_TOKEN_FILE: file, HOLDFAST_BEARER_TOKEN: "jwt" };
    expect((await run(["ls"], both)).stderr).toMatch(/^holdfast: both HOLDFAST_BEARER_TOKEN and HOLDFAST_BEARER_TOKEN_FILE are set\n/);
  });
});

describe("the options go before the environment", () => {
  it("and one kind before the other", async () => {
    const elsewhere = { HOLDFAST_URL: "http://127.0.0.1:9", HOLDFAST_TABLE: "no-such-table" };
    expect((await run(["ls", "--url", service.url], elsewhere)).status).toBe(0);
    expect((await run(["--url", service.url, "ls"], elsewhere)).status).toBe(0);
    const { status } = await run(["ls", "--table", service.table.tableName], { ...service.tableEnv, HOLDFAST_URL: "http://127.0.0.1:9" });
    expect(status).toBe(0);
  });
});

describe("where the packages of AWS are not installed", () => {
  it.each([
    [["--table", "t"], "the AWS SDK could not be loaded", "npm install @aws-sdk/client-dynamodb @aws-sdk/lib-dynamodb"],
    [
      ["--url", "http://127.0.0.1:9", "--sign", "--region", "us-east-1"],
      "the environment has no credentials",
      "npm install @aws-sdk/credential-provider-node",
    ],
  ])("%j is 78, and says which it takes", async (args, what, packages) => {
    const elsewhere = await mkdtemp(join(tmpdir(), "holdfast-"));
    await cp(dirname(programFile()), elsewhere, { recursive: true });
    await mkdir(join(elsewhere, "node_modules/@valibot"), { recursive: true });
    for (const name of ["commander", "fast-string-truncated-width", "picocolors", "valibot", "@valibot/to-json-schema"])
      await symlink(join(ROOT, "node_modules", name), join(elsewhere, "node_modules", name));
    const program = promisify(execFile)(process.execPath, [join(elsewhere, "holdfast.js"), ...args, "ls"], { env: plainEnvironment({}) });
    const { code, stderr } = (await program.catch((error: unknown) => error)) as { readonly code?: number; readonly stderr: string };
    expect(code).toBe(78);
    expect(stderr).toContain(what);
    expect(stderr).toContain(packages);
    await rm(elsewhere, { recursive: true });
  });
});

describe("straight on the table", () => {
  it("meets who comes by the service, in its namespace", async () => {
    const running = start(["lock", "table", "--owner", "me", "--", "sh", "-c", "env | grep ^AWS; echo runs; read line"], service.tableEnv);
    const printed = await running.printed(/runs/);
    expect((await service.locks.inspect("table")).holders).toMatchObject([{ owner: "me" }]);
    expect(await service.locks.tryAcquire("table")).toBeNull();
    const seen = await run(["ls", "table"], service.tableEnv);
    running.stdin.end("\n");
    expect(await running.ended).toMatchObject({ status: 0, stderr: "" });
    expect(seen).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("me"),
      stderr: "",
    });
    // The AWS settings of this process must not reach the command.
    const given = Object.keys(service.tableEnv).filter((name) => name.startsWith("AWS"));
    expect(printed.match(/^AWS\w+/gm)?.toSorted()).toEqual(given.toSorted());
  });

  it("refuses a namespace that can't be right, by name", async () => {
    expect(await run(["lock", "k", "-n", "--namespace", "mine", "--", "echo", "got"], service.tableEnv)).toEqual({
      status: 78,
      stdout: "",
      stderr:
        'holdfast: lock k: namespace: "mine" can\'t be right: all callers of this table share the namespace "default"\n' +
        "The command was not run. Give the namespace by --namespace or HOLDFAST_NAMESPACE, or leave it out.\n",
    });
  });

  it("that isn't there is told in a line", async () => {
    const { status, stdout, stderr } = await run(["ls", "--table", "no-such-table"], service.tableEnv);
    expect({ status, stdout }).toEqual({ status: 78, stdout: "" });
    expect(stderr).toMatch(
      /^holdfast: ls: The table or the credentials are not set up: ResourceNotFoundException: .*\nIs there a table no-such-table for holdfast in this Region, and may these credentials use it\?\n$/,
    );
  });
});

describe("without what AWS's tools need", () => {
  const NOTHING = { AWS_EC2_METADATA_DISABLED: "true", AWS_CONFIG_FILE: "/dev/null", AWS_SHARED_CREDENTIALS_FILE: "/dev/null" };
  const SETTINGS = "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and --region or AWS_REGION, as for any AWS tool.\n";
  const REGION = "Give --region, or set AWS_REGION.\n";

  it.each([
    ["no Region, on a table", ["--table", "t", "ls"], "ls: The table or the credentials are not set up: Error: Region is missing", REGION],
    [
      "no credentials, on a table",
      ["--table", "t", "--region", "us-east-1", "ls"],
      "ls: The table or the credentials are not set up: CredentialsProviderError: Could not load credentials from any providers",
      SETTINGS,
    ],
    [
      "no Region, to sign for",
      ["--url", "http://127.0.0.1:9", "--sign", "ls"],
      "requests can't be signed: sigv4: no region; give one or set AWS_REGION",
      SETTINGS,
    ],
    [
      "no credentials, to sign with",
      ["--url", "http://127.0.0.1:9", "--sign", "--region", "us-east-1", "ls"],
      "requests can't be signed: Could not load credentials from any providers",
      SETTINGS,
    ],
  ])("%s: 78, after no more than one try", async (_what, args, message, advice) => {
    expect(await run(args, NOTHING)).toEqual({ status: 78, stdout: "", stderr: `holdfast: ${message}\n${advice}` });
  });

  it("no command is run", async () => {
    const { status, stdout, stderr } = await run(["--table", "t", "lock", "k", "--", "echo", "ran"], NOTHING);
    expect({ status, stdout }).toEqual({ status: 78, stdout: "" });
    expect(stderr).toContain(`\nThe command was not run. ${REGION}`);
  });
});
