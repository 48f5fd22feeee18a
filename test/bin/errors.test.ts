/** Each error prints a line or two and has its own exit status, row by row. */
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CODES, CliError, INTERRUPTED, Interrupted } from "../../bin/cli-error.js";
import { EXITS } from "../../bin/exit-codes.js";
import { failureOf, formatFailure } from "../../bin/format-failure.js";
import { ERRORS } from "../../lib/core/errors.js";
import { InvalidRequestError, LockError } from "../../lib/index.js";
import { run } from "./in-process.js";

const NOBODY = { HOLDFAST_URL: "http://127.0.0.1:9" };
const LONG_KEY = "k".repeat(201);

/** A server that answers everything with this status and no problem document, as a gateway does. */
let gatewayStatus = 403;
const gateway = createServer((_request, response) => void response.writeHead(gatewayStatus).end('{"message":"No such thing"}'));

beforeAll(async () => {
  gateway.listen(0, "127.0.0.1");
  await once(gateway, "listening");
});
afterAll(() => void gateway.close());

const SEE_HELP = "See holdfast --help, or --help after a command.";
const LOCK_AS = "What to run stands after --, as in: holdfast lock KEY -- COMMAND";

describe("a command line that breaks a rule", () => {
  it.each<readonly [args: readonly string[], message: string, next: string]>([
    [["frobnicate"], "unknown command 'frobnicate'", SEE_HELP],
    [["shwo", "k"], "unknown command 'shwo' (Did you mean show?)", SEE_HELP],
    [["ls", "--frob"], "unknown option '--frob'", SEE_HELP],
    [["ls", "a", "b"], "too many arguments for 'ls'. Expected 1 argument but got 2.", SEE_HELP],
    [["show"], "missing required argument 'key'", SEE_HELP],
    [
      ["show", LONG_KEY],
      `KEY: "${"k".repeat(80)}…" given; a key is 1 to 200 characters of A-Z a-z 0-9 . _ : ~ - and not . or ..`,
      SEE_HELP,
    ],
    [
      ["show", "night job/7"],
      'KEY: "night job/7" given; a key is 1 to 200 characters of A-Z a-z 0-9 . _ : ~ - and not . or ..; night_job_7 is one',
      SEE_HELP,
    ],
    [["dev", "4711"], 'dev: unexpected argument "4711"', "Did you mean --port 4711?"],
    [["dev", "99999"], 'dev: unexpected argument "99999"', "A port is given by --port, from 0 to 65535."],
    [["break", "k"], "required option '--reason <text>' not specified", SEE_HELP],
    [["break", "k", "--reason", "", "--token", "1"], "option '--reason <text>' argument '' is invalid. It must not be empty.", SEE_HELP],
    [
      ["break", "k", "--reason", "x", "--token", "12a"],
      "option '--token <n>' argument '12a' is invalid. It must be a whole number.",
      SEE_HELP,
    ],
    [["watch", "--interval", "1ms"], "--interval: must be from 200ms to 1h", ""],
    [["ls", "--max", "0"], "option '--max <n>' argument '0' is invalid. It must be at least 1.", SEE_HELP],
    [
      ["runs", "--state", "dead"],
      "option '--state <state>' argument 'dead' is invalid. Allowed choices are running, interrupted, succeeded, failed, skipped, too-late.",
      SEE_HELP,
    ],
    [
      ["completion", "tcsh"],
      "command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
      SEE_HELP,
    ],
    [["lock", "k"], "lock: there is no command after --", "holdfast lock KEY -- COMMAND"],
    [["lock", "k", "true"], "lock: put -- before the command", "holdfast lock k -- true"],
    [["lock", "--wait", "3s", "k", "echo", "a"], "lock: put -- before the command", "holdfast lock k -- echo a"],
    [["lock", "k", "sh", "-c", "true"], "unknown option '-c'", LOCK_AS],
    [["once", "k", "x", "--", "true"], 'once: unexpected argument "x" before --', "holdfast once KEY -- COMMAND"],
    [["lock", "k", "x", "--priority", "1", "--", "true"], "--priority: not with several keys", ""],
    [["lock", "--", "true"], "lock: there is no KEY before --", "holdfast lock KEY -- COMMAND"],
    [
      ["lock", "a b", "--", "true"],
      'KEY: "a b" given; a key is 1 to 200 characters of A-Z a-z 0-9 . _ : ~ - and not . or ..; a_b is one',
      SEE_HELP,
    ],
    [
      ["lock", "k", "--lease", "30", "--", "true"],
      "option '--lease <duration>' argument '30' is invalid. 30 has no unit: write 30s, or 30 with ms, m, h or d.",
      SEE_HELP,
    ],
    [
      ["lock", "k", "--lease", "soon", "--", "true"],
      "option '--lease <duration>' argument 'soon' is invalid. Write it like 500ms, 30s, 5m, 2h, 1d or 1h30m.",
      SEE_HELP,
    ],
    [["lock", "k", "--lease", "2d", "--", "true"], "--lease: 2d given; it must be a duration from 1s to 1d", SEE_HELP],
    [
      ["lock", "k", "--lease", "10s", "--kill-after", "6s", "--", "true"],
      "--kill-after: must be at most half of --lease",
      "The command is asked to end that long before the lease is over; before that there must be time to renew it.",
    ],
    [["lock", "k", "--shared", "--limit", "2", "--", "true"], "--limit: 2 given; a shared lease takes none", SEE_HELP],
    [["lock", "k", "-n", "-w", "3s", "--", "true"], "use either --wait or --no-wait", ""],
    [
      ["lock", "k", "--permits", "3", "--", "true"],
      "--permits: needs --limit, how many permits there are",
      "All who use the key say the same limit.",
    ],
    [["lock", "k", "--priority", "10", "--", "true"], "--priority: 10 given; it must be a whole number from 0 to 9", SEE_HELP],
    [
      ["lock", "k", "-E", "256", "--", "true"],
      "option '-E, --conflict-exit-code <status>' argument '256' is invalid. A status is from 0 to 255.",
      SEE_HELP,
    ],
    [["limit", "k", "--", "true"], "required option '--rate <rate>' not specified", SEE_HELP],
    [["limit", "k", "--rate", "1/1m", "true"], "limit: put -- before the command", "holdfast limit k -- true"],
    ...[
      ["10", "Write it like 100/1m, or 5/1s/2 for bursts of 2."],
      ["1/1m/1/1", "Write it like 100/1m, or 5/1s/2 for bursts of 2."],
      ["0/1m", "It must be at least 1."],
      ["1/m", "Write it like 500ms, 30s, 5m, 2h, 1d or 1h30m."],
    ].map(
      ([rate = "", why = ""]) =>
        [["limit", "k", "--rate", rate, "--", "true"], `option '--rate <rate>' argument '${rate}' is invalid. ${why}`, SEE_HELP] as const,
    ),
    [["limit", "k", "--rate", "1/500ms", "--", "true"], "--rate: 500ms given; it must be a duration from 1s to 31d", SEE_HELP],
    [
      ["limit", "k", "--rate", "9/1m", "--cost", "10", "--", "true"],
      "--cost: 10 given; it takes at most the smallest burst of the rates: a whole number from 1 to 3",
      SEE_HELP,
    ],
    [["limit", "k", "--rate", "9/1m", "--lease", "5s", "--", "true"], "--lease: needs --concurrent: without it nothing is held", ""],
    [
      ["limit", "k", "--rate", "9/1m", "--concurrent", "2", "--lease", "2d", "--", "true"],
      "--lease: 2d given; it must be a duration from 1s to 1d",
      SEE_HELP,
    ],
    [["once", "k"], "once: there is no command after --", "holdfast once KEY -- COMMAND"],
    [["once", "k", "--keep", "1s", "--", "true"], "--keep: 1s given; it must be a duration from 1m to 365d", SEE_HELP],
    [["once", "k", "--tick", "10ms", "--", "true"], "--tick: 10ms given; it must be a duration from 1s to 365d", SEE_HELP],
    [
      ["once", "k", "--final", "1,x", "--", "true"],
      "option '--final <statuses>' argument '1,x' is invalid. It must be a whole number.",
      SEE_HELP,
    ],
    [
      ["once", "k", "--large-output", "keep", "--", "true"],
      "option '--large-output <what>' argument 'keep' is invalid. Allowed choices are error, drop.",
      SEE_HELP,
    ],
    [["--url", "http://127.0.0.1:9", "--table", "t", "ls"], "option '--url <url>' cannot be used with option '--table <name>'", SEE_HELP],
    [["--table", "t", "--sign", "ls"], "option '--table <name>' cannot be used with option '--sign'", SEE_HELP],
    [["--url", "nowhere", "ls"], '--url: "nowhere" is no http URL: it must begin with http:// or https://', SEE_HELP],
    [["--url", "localhost:4653", "ls"], '--url: "localhost:4653" is no http URL: it must begin with http:// or https://', SEE_HELP],
    [["unlock", "k"], "unknown command 'unlock'", "Is it holdfast break that you want? See holdfast break --help."],
    [["status", "k"], "unknown command 'status'", "Is it holdfast show that you want? See holdfast show --help."],
    [["--url", "http://u:p@127.0.0.1:9", "ls"], "--url: takes no user or password", SEE_HELP],
  ])("is 64: %j", async (args, message, next) => {
    expect(await run(args, NOBODY)).toEqual({ status: 64, stdout: "", stderr: `holdfast: ${message}\n${next === "" ? "" : `${next}\n`}` });
  });

  it("is 64 without a command too, and help is on stderr", async () => {
    const { status, stdout, stderr } = await run([], {});
    expect({ status, stdout }).toEqual({ status: 64, stdout: "" });
    expect(stderr).toContain("Usage: holdfast COMMAND");
  });

  it("as JSON is one line of it", async () => {
    const { status, stderr } = await run(["--json", "lock", "k"], NOBODY);
    expect({ status, error: JSON.parse(stderr) as unknown }).toEqual({
      status: 64,
      error: {
        error: {
          status: 64,
          code: "invalid-request",
          message: "lock: there is no command after --",
          definite: true,
          next: "holdfast lock KEY -- COMMAND",
        },
      },
    });
  });
});

describe("help", () => {
  it.each([
    [["help"], []],
    [["help", "lock"], ["lock"]],
  ] as const)("%j prints what --help does", async (args, command) => {
    const { status, stdout, stderr } = await run(args, {});
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toBe((await run([...command, "--help"], {})).stdout);
  });

  it("of an unknown command is 64", async () => {
    expect(await run(["help", "frobnicate"], {})).toMatchObject({ status: 64, stdout: "", stderr: expect.stringContaining("Usage: ") });
  });
});

describe("where the locks are", () => {
  it.each([
    ["isn't said", {}, "no lock service given", /^Pass --url or set HOLDFAST_URL \(.*:4653\), or pass --table or set HOLDFAST_TABLE /],
    [
      "is said twice",
      { HOLDFAST_URL: "http://127.0.0.1:9", HOLDFAST_TABLE: "t" },
      "both HOLDFAST_URL and HOLDFAST_TABLE are set",
      /^Say which/,
    ],
    [
      "isn't said by variables that are empty",
      { HOLDFAST_URL: "", HOLDFAST_TABLE: "" },
      "no lock service given",
      /^Pass --url or set HOLDFAST_URL \(.*:4653\), or pass --table or set HOLDFAST_TABLE /,
    ],
  ])("%s: 78", async (_what, env, message, next) => {
    const { status, stderr } = await run(["ls"], env);
    const [first, second] = stderr.split("\n");
    expect({ status, first, second }).toEqual({ status: 78, first: `holdfast: ${message}`, second: expect.stringMatching(next) });
  });
});

describe.concurrent("a service that doesn't answer", () => {
  it.each([
    [
      ["lock", "k", "--wait", "300ms", "--", "echo", "ran"],
      /^holdfast: lock k: .*no answer.*\nThe command was not run\. Start one, which has no lock yet, with: holdfast dev --port PORT\n$/,
    ],
    [["ls"], /^holdfast: ls: .*no answer.*\nStart one, which has no lock yet, with: holdfast dev --port PORT\n$/],
    [["break", "k", "--reason", "x", "--token", "1"], /^holdfast: break k: .*no answer.*\nStart one/],
  ])("because nobody is there is 78: %j", async (args, stderr) => {
    const unreachable = createServer().listen(0, "127.0.0.1");
    await once(unreachable, "listening");
    const { port } = unreachable.address() as AddressInfo;
    unreachable.close();
    const { status, stdout, stderr: said } = await run(args, { HOLDFAST_URL: `http://127.0.0.1:${port}` });
    expect({ status, stdout, said: said.replace(`--port ${port}\n`, "--port PORT\n") }).toEqual({
      status: 78,
      stdout: "",
      said: expect.stringMatching(stderr),
    });
  });
});

describe("a service elsewhere that nobody listens at", () => {
  const refused = new LockError("list: no answer (ECONNREFUSED) from there", { code: "not-configured", definite: true, retry: "never" });

  it.each([
    ["http://127.0.0.1:4653", "Start one, which has no lock yet, with: holdfast dev"],
    ["http://localhost:4653/", "Start one, which has no lock yet, with: holdfast dev"],
    ["http://[::1]:5000", "Start one, which has no lock yet, with: holdfast dev --port 5000"],
    ["https://localhost:4653", "Correct --url or HOLDFAST_URL, or the proxy before it."],
    ["http://locks.example.com:4653", "Correct --url or HOLDFAST_URL, or the proxy before it."],
  ])("is started only on this machine: %s", (url, next) => {
    expect(failureOf(refused, "reads", { url }).next).toBe(next);
  });
});

describe("a wrong configuration", () => {
  const AT = { url: "https://locks.example.com" };
  const ON = { table: "locks" };
  const CERTIFICATE = /^Is it of an authority of your own, .* in NODE_EXTRA_CA_CERTS\.$/;
  const ENDPOINT = /^Correct --region, AWS_ENDPOINT_URL_DYNAMODB or AWS_ENDPOINT_URL, or the proxy before the table\.$/;

  it.each<[said: string, where: typeof AT | typeof ON, next: RegExp]>([
    ["list: The certificate of https://locks.example.com is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)", AT, CERTIFICATE],
    ["list: …: The certificate of https://dynamodb.eu-west-1.amazonaws.com:443 is not trusted (CERT_HAS_EXPIRED)", ON, CERTIFICATE],
    [
      "list: …: no answer (ENOTFOUND) from https://dynamodb.nowhere.amazonaws.com:443: is the endpoint right, and does it run?",
      ON,
      ENDPOINT,
    ],
    ["list: …: What answers (200) at http://proxy:80 is not DynamoDB: is the endpoint right?", ON, ENDPOINT],
    ["list: …: A proxy or a gateway answered 403 before http://proxy:80: Forbidden", ON, ENDPOINT],
    ["list: the answer 200 is not one to this request", AT, /^Correct --url or HOLDFAST_URL, or the proxy before it\.$/],
    ["list: …: Error: Region is missing", ON, /^Give --region, or set AWS_REGION\.$/],
    ["list: …: CredentialsProviderError: Could not load credentials from any providers", ON, /^Set AWS_PROFILE, /],
  ])("(%s) names what to correct", (said, where, next) => {
    const error = new LockError(said, { code: "not-configured", definite: true, retry: "never" });
    expect(failureOf(error, "reads", where).next).toMatch(next);
  });
});

describe("a gateway that answers in place of the service", () => {
  it.each<[answered: number, args: readonly string[], status: number, stderr: RegExp, token?: string]>([
    [
      403,
      ["ls"],
      77,
      /\nIs the request signed \(--sign\), by somebody who may do that\? Operators' commands \([^)]*break[^)]*\) need grantAdmin\.\n$/,
    ],
    [403, ["ls"], 77, /\(does the token have a scope .*\)\nDoes the token have a scope for that\? .*: locks:admin, [^\n]*\n$/, "jwt"],
    [401, ["ls"], 78, /: No such thing\nIs the token over, or of another issuer or audience [^\n]* --token-file [^\n]*\n$/, "jwt"],
    [403, ["lock", "k", "--", "echo", "ran"], 77, /\nThe command was not run\. Is the request signed/],
    [
      401,
      ["reset", "k", "--reason", "x"],
      78,
      /: No such thing\nIs the request signed \(--sign\), or is there a bearer token\? Set AWS_PROFILE/,
    ],
    [
      404,
      ["ls"],
      78,
      /^holdfast: ls: The gateway answered 404 before the service was reached: No such thing \(is http.*\)\nIs http:\S+ the URL of the API\? Its path is the stage, or empty\.\n$/,
    ],
    [404, ["lock", "k", "--", "echo", "ran"], 78, /\nThe command was not run\. Is http:\S+ the URL of the API\?/],
  ])("with %i: %j is %i", async (answered, args, status, stderr, token = "") => {
    gatewayStatus = answered;
    const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
    const env = { HOLDFAST_URL: url, HOLDFAST_BEARER_TOKEN: token };
    expect(await run(args, env)).toEqual({ status, stdout: "", stderr: expect.stringMatching(stderr) });
  });
});

describe("every refusal of the service", () => {
  const refusal = (code: string, retry: LockError["retry"]) => new LockError("k: said so", { code, definite: true, retry });
  const statusOf = (error: unknown): number => failureOf(error, "reads").status;

  it.each(Object.keys(ERRORS))("has a status of its kind: %s", (code) => {
    const { retry, status } = ERRORS[code as keyof typeof ERRORS];
    const exit = statusOf(refusal(code, retry));
    expect(Object.values(EXITS).map((one) => one.status)).toContain(exit);
    // The exit status of an error that may be retried later says so.
    if (retry === "later") expect([69, 75]).toContain(exit);
    if (status === 403) expect(exit).toBe(77);
    if (exit === 70) expect(["internal", "method-not-allowed", "unsupported-media-type"]).toContain(code);
  });

  it.each([
    ["limit-mismatch", "never", {}, /^All who use a name give the same --limit, .* holdfast limits reset NAME\)\.$/],
    ["clock-skew", "later", { table: "t" }, /^Correct this machine's clock\.$/],
    ["clock-skew", "later", { url: "http://there" }, /^Try again later\. If it lasts, a clock of the service is wrong\.$/],
  ] as const)("that a caller can do something about says what: %s, %s, %j", (code, retry, where, next) => {
    expect(failureOf(refusal(code, retry), "reads", where as { readonly url: string }).next).toMatch(next);
  });

  it("tells long times in words", () => {
    const skew = new LockError("ls: the clock is 3600628 ms from the table's; after 999 ms", {
      code: "clock-skew",
      definite: true,
      retry: "later",
    });
    expect(failureOf(skew, "reads").message).toBe("ls: the clock is 1h from the table's; after 999 ms");
  });

  it("of Node's permission model is no defect, and names the permissions", () => {
    const denied = Object.assign(new Error("Access to this API has been restricted"), { code: "ERR_ACCESS_DENIED" });
    expect(failureOf(denied, "runs")).toMatchObject({ status: 78, next: expect.stringContaining("--allow-child-process") });
  });

  it("and every error beside them has one, and no stack trace", () => {
    expect(statusOf(new InvalidRequestError("key: is wrong", "key"))).toBe(64);
    expect(statusOf(new CliError("config", "not said"))).toBe(78);
    expect(statusOf(new CliError("notGot", "held", { status: 5 }))).toBe(5);
    expect(statusOf(new Interrupted("SIGTERM"))).toBe(143);
    for (const thrown of [new Error("one\n    at two"), "one\n    at two", new TypeError("one")])
      expect(formatFailure(failureOf(thrown, "reads"), false)).toBe("holdfast: one\nThis is a defect of holdfast.");
    const ofALaterVersion = (["never", "later", "same", "new-lease"] as const).map((retry) => statusOf(refusal("not-known", retry)));
    expect(ofALaterVersion).toEqual([65, 75, 69, 69]);
  });

  it("is told as JSON with a code of one vocabulary, never the status's name", () => {
    const codes = [...Object.values(CODES), INTERRUPTED];
    expect(codes.filter((code) => !/^[a-z]+(?:-[a-z]+)*$/.test(code))).toEqual([]);
    expect(failureOf(new Interrupted("SIGINT"), "runs").code).toBe("interrupted");
    expect(failureOf(new Error("one"), "reads").code).toBe("internal");
    expect(failureOf(new CliError("notFound", "k"), "reads").code).toBe("not-found" satisfies keyof typeof ERRORS);
  });

  it("may be of more than text", () => {
    expect(formatFailure(failureOf(new CliError("lost", "a\u001B[2Jb"), "reads"), false)).toBe("holdfast: a\uFFFD[2Jb");
  });
});
