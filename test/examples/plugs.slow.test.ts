/** The plugs, in two processes each, against the other project's own code. Each control is the same without the plug. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { type AddressInfo } from "node:net";
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
