/** The plugs, in two processes each, against the other project's own code. Each control is the same without the plug. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "../../infra/local/gateway.js";
import { startLocalService } from "../../infra/local/local-service.js";
import { ROOT } from "../tidy/tree.js";

const PLUGS = join(ROOT, "examples/plugs");

let service: Gateway;
const started = new Set<ChildProcess>();

beforeAll(async () => {
  service = await startLocalService({ ports: [0], log: () => undefined, onFailure: () => undefined });
});
afterEach(() => started.forEach((child) => child.kill("SIGKILL")));
afterAll(() => service.close());

/** A process, and the lines that it printed. */
interface Instance {
  readonly lines: readonly string[];
  /** Waits for `count` lines that begin with the word, and returns what follows it. @throws Error if the process ends without them */
  printed(word: string, count?: number): Promise<readonly string[]>;
  write(line: string): void;
}

/** Starts the instance that belongs to an example, with the plug or bare. */
function start(name: string, how: string, env: Readonly<Record<string, string>> = {}): Instance {
  const child = spawn(process.execPath, ["--import", "tsx", `examples/${name.replace("/", "/instances/")}.ts`, how], {
    cwd: ROOT,
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, HOLDFAST_URL: service.url, ...env },
  });
  started.add(child);
  const lines: string[] = [];
  let said = "";
  let isOver = false;
  const waiting = new Set<() => void>();
  const changed = (): void => waiting.forEach((wake) => wake());
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    lines.push(...(said + text).split("\n"));
    said = lines.pop() ?? "";
    changed();
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.on("close", () => {
    isOver = true;
    changed();
  });
  return {
    lines,
    async printed(word, count = 1) {
      for (;;) {
        const found = lines.filter((line) => line.startsWith(word)).map((line) => line.slice(word.length + 1));
        if (found.length >= count) return found;
        if (isOver) throw new Error(`${name} ended without “${word}”: ${stderr}`);
        await new Promise<void>((wake) => waiting.add(wake));
      }
    },
    write: (line) => void child.stdin.write(`${line}\n`),
  };
}

describe.skipIf(!existsSync(join(PLUGS, "node_modules")))("the plugs, if `npm ci --prefix examples/plugs` installed the projects", () => {
  it("have the types of the projects", async () => {
    await promisify(execFile)("npx", ["tsc", "--noEmit", "-p", PLUGS], { cwd: ROOT });
  });

  describe("node-cron, on two instances", () => {
    const firesOfBoth = async (how: string): Promise<readonly string[]> => {
      const both = [start("plugs/node-cron", how), start("plugs/node-cron", how)];
      await Promise.all(both.map((one) => one.printed("", 5)));
      return both.flatMap(({ lines }) => lines).filter((line) => line.startsWith("ran "));
    };

    it("runs each fire once", async () => {
      const ran = await firesOfBoth("plugged");
      expect(ran.length).toBeGreaterThan(2);
      expect(new Set(ran).size).toBe(ran.length);
    });

    it("control: without the coordinator it runs some twice", async () => {
      const ran = await firesOfBoth("bare");
      expect(new Set(ran).size).toBeLessThan(ran.length);
    });
  });

  describe("express-rate-limit, on two instances", () => {
    const answers = async (how: string): Promise<readonly Response[]> => {
      const both = [start("plugs/express-rate-limit", how), start("plugs/express-rate-limit", how)];
      const [one, other] = (await Promise.all(both.map((instance) => instance.printed("at")))).flat();
      const all: Response[] = [];
      for (const url of [one, other, one, other, one, other, one, other]) all.push(await fetch(url!));
      return all;
    };

    it("lets a client in five times, whichever it asks, and then says when to come back", async () => {
      const all = await answers("plugged");
      expect(all.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
      expect(all[0]!.headers.get("ratelimit")).toMatch(/; r=4; t=12$/);
      expect(Number(all.at(-1)!.headers.get("retry-after"))).toBeLessThanOrEqual(12);
    });

    it("control: without the store each counts for itself", async () => {
      expect((await answers("bare")).map(({ status }) => status)).toEqual(Array(8).fill(200));
    });
  });

  describe("atproto's client, on two instances", () => {
    /** The refresh tokens that a server got, when two instances refresh at once. It answers the first when it has the second, or after a second. */
    const presented = async (how: string): Promise<{ readonly tokens: readonly string[]; readonly has: readonly string[] }> => {
      const tokens: string[] = [];
      const answering = new Set<() => void>();
      const tokenSet = (n: number) => ({
        sub: "did:plc:ann",
        iss: "https://as.example",
        aud: "https://rs.example",
        refresh_token: `refresh ${n}`,
      });
      let stored = JSON.stringify({ ...tokenSet(0), expires_at: "2020-01-01T00:00:00Z" });
      const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
        const body = await text(request);
        if (request.method === "PUT") stored = body;
        if (request.method !== "POST") return void response.end(stored);
        const isSpent = tokens.includes(body);
        tokens.push(body);
        const second = new Promise<void>((resolve) => answering.add(resolve));
        if (tokens.length > 1) answering.forEach((go) => go());
        await Promise.race([second, new Promise((resolve) => setTimeout(resolve, 1000))]);
        if (isSpent) response.statusCode = 400;
        response.end(
          JSON.stringify(isSpent ? { error: "invalid_grant" } : { ...tokenSet(tokens.length), expires_at: "2100-01-01T00:00:00Z" }),
        );
      };
      const server = createServer((request, response) => void answer(request, response));
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const env = { TOKENS_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
      const both = [start("plugs/atproto", how, env), start("plugs/atproto", how, env)];
      await Promise.all(both.map((one) => one.printed("ready")));
      both.forEach((one) => one.write("go"));
      const has = (await Promise.all(both.map((one) => one.printed("has")))).flat();
      server.close();
      return { tokens, has };
    };

    it("presents a refresh token once, and both have the new one", async () => {
      expect(await presented("plugged")).toEqual({ tokens: ["refresh 0"], has: ["refresh 1", "refresh 1"] });
    });

    it("control: with a lock of one process the server gets a token that is spent", async () => {
      expect((await presented("bare")).tokens).toEqual(["refresh 0", "refresh 0"]);
    });
  });
});

describe("the action of GitHub, as a runner runs it", () => {
  const CREDENTIALS = { AccessKeyId: "ASIAJOB", SecretAccessKey: "secret", SessionToken: "session", Expiration: "2100-01-01T00:00:00Z" };
  let folder: string;
  let aws: Server;
  /** The callers of requests to the service: the id of the key that signed, and the session's token. */
  const callers = new Set<string>();
  /** The requests that GitHub and AWS got. */
  const asked: string[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "holdfast-action-"));
    // As the page says, into another repository.
    const [, commands = ""] = /```sh\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, "docs/plugs.md"), "utf8")) ?? [];
    await promisify(execFile)("bash", ["-ec", commands.replaceAll("../shop/.github/actions/holdfast", folder)], { cwd: ROOT });
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const { url = "", method = "GET", headers } = request;
      const body = await text(request);
      if (url.startsWith("/token")) {
        asked.push(`${headers.authorization} ${url}`);
        return void response.end(JSON.stringify({ value: "the job's token" }));
      }
      if (url === "/") {
        const given = new URLSearchParams(body);
        asked.push(`${given.get("Action")} ${given.get("RoleArn")} ${given.get("WebIdentityToken")}`);
        return void response.end(
          Object.entries(CREDENTIALS)
            .map(([name, value]) => `<${name}>${value}</${name}>`)
            .join(""),
        );
      }
      callers.add(`${/Credential=(\w+)/.exec(headers.authorization ?? "")?.[1]} ${String(headers["x-amz-security-token"])}`);
      const { host: _host, connection: _connection, ...sent } = headers as Record<string, string>;
      const served = await fetch(service.url + url, { method, headers: sent, ...(body !== "" && { body }) });
      response.writeHead(served.status, Object.fromEntries(served.headers));
      response.end(await served.text());
    };
    aws = createServer((request, response) => void answer(request, response));
    await new Promise<void>((resolve) => aws.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => {
    aws.close();
    rmSync(folder, { recursive: true });
  });

  /** The file of a step, as the action names it. */
  const entry = (step: string): string => new RegExp(`${step}: (\\S+)`).exec(readFileSync(join(folder, "action.yml"), "utf8"))![1]!;
  /** A job with the action as a step: what the runner gives its two processes. */
  const job = (name: string, inputs: Readonly<Record<string, string>> = {}) => {
    const at = `http://127.0.0.1:${(aws.address() as AddressInfo).port}`;
    const files = { GITHUB_STATE: join(folder, `${name}.state`), GITHUB_OUTPUT: join(folder, `${name}.output`) };
    Object.values(files).forEach((file) => writeFileSync(file, ""));
    const read = (file: string) => readFileSync(file, "utf8");
    const step = async (script: string, state: Readonly<Record<string, string>> = {}) => {
      const env = {
        ...{ ...process.env, ...files, ...state, GITHUB_REPOSITORY: "shop/shop", GITHUB_RUN_ID: name },
        ...{ INPUT_URL: at, "INPUT_WAIT-SECONDS": "30", INPUT_ROLE: "arn:aws:iam::1:role/ci", AWS_REGION: "eu-central-1" },
        ...{ AWS_ENDPOINT_URL_STS: at, ACTIONS_ID_TOKEN_REQUEST_URL: `${at}/token?v=2`, ACTIONS_ID_TOKEN_REQUEST_TOKEN: "asker" },
        ...inputs,
      };
      const child = spawn(process.execPath, [join(folder, entry(script))], { env, stdio: ["ignore", "pipe", "inherit"] });
      started.add(child);
      const ended = once(child, "close");
      return { said: await text(child.stdout), status: ((await ended) as [number])[0] };
    };
    const state = (): Record<string, string> =>
      Object.fromEntries(
        [...read(files.GITHUB_STATE).matchAll(/^(.+)=(.+)$/gm)].map(([, key = "", value = ""]) => [`STATE_${key}`, value]),
      );
    return { main: () => step("main"), post: () => step("post", state()), output: () => read(files.GITHUB_OUTPUT) };
  };
  const holdersOf = async (key: string): Promise<readonly { readonly owner: string; readonly fencingToken: number }[]> => {
    const found: any = await (await fetch(`${service.url}/v1/locks/${key}`)).json(); // eslint-disable-line @typescript-eslint/no-explicit-any -- a test reads what it got
    return found.holders;
  };
  /** Two jobs at once, each of which does something between the steps of the action; the most of them that did. */
  const mostAtOnce = async (how: string): Promise<number> => {
    let [inside, most] = [0, 0];
    const run = async (name: string): Promise<void> => {
      const { main, post } = job(`${how}-${name}`, { INPUT_KEY: "deploy:prod" });
      if (how === "locked") expect(await main()).toMatchObject({ status: 0 });
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setTimeout(resolve, 500));
      inside--;
      if (how === "locked") expect(await post()).toEqual({ said: "released\n", status: 0 });
    };
    await Promise.all([run("1"), run("2")]);
    return most;
  };

  it("lets one job at a time between its steps, by credentials of the job's role", async () => {
    expect(await mostAtOnce("locked")).toBe(1);
    expect([...callers]).toEqual(["ASIAJOB session"]);
    expect(new Set(asked)).toEqual(
      new Set(["Bearer asker /token?v=2&audience=sts.amazonaws.com", "AssumeRoleWithWebIdentity arn:aws:iam::1:role/ci the job's token"]),
    );
  });

  it("control: without the action both are there", async () => {
    expect(await mostAtOnce("bare")).toBe(2);
  });

  it("gives the job its fencing token, and frees the key at its end", async () => {
    const { main, post, output } = job("3", { INPUT_KEY: "deploy:stage" });
    await main();
    const [held] = await holdersOf("deploy:stage");
    expect(held!.owner).toBe("shop/shop run 3");
    expect(output()).toBe(`fencing-token=${held!.fencingToken}\n`);
    await post();
    expect(await holdersOf("deploy:stage")).toEqual([]);
  });

  it("fails a job whose lease was lost", async () => {
    const { main, post } = job("4", { INPUT_KEY: "deploy:lost" });
    await main();
    const [held] = await holdersOf("deploy:lost");
    const body = JSON.stringify({ fencingToken: held!.fencingToken, reason: "a test", drainMs: 0 });
    await fetch(`${service.url}/v1/locks/deploy:lost/break`, { method: "POST", headers: { "content-type": "application/json" }, body });
    expect(await post()).toMatchObject({ status: 1, said: expect.stringContaining("::error::") as string });
  });

  it("fails a job that has no OIDC token, and says what it needs", async () => {
    const { main } = job("5", { INPUT_KEY: "deploy:prod", ACTIONS_ID_TOKEN_REQUEST_URL: "" });
    expect(await main()).toMatchObject({ status: 1, said: expect.stringContaining("id-token: write") as string });
  });
});
