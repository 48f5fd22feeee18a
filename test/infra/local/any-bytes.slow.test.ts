/**
 * Whatever bytes a socket sends, the listeners on localhost go on: those of `npm start`, `holdfast dev` and `holdfast ui`, each in a process
 * of its own. A browser sends such requests for any web page, with no more than an image.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endAll, start } from "../../bin/holdfast.js";
import { plainEnvironment } from "../../docs/npm-start.js";
import { Random } from "../../simulation/random.js";

/** The requests to each listener, and how many are on their way at once. */
const REQUESTS = 20_000;
const AT_ONCE = 40;
const SEED = 8;
/** 20,000 connections on a loaded machine. */
const SENDING_MS = 300_000;

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "QUERY", "get", "", "G\0T"];
const TARGETS = [
  ...["/", "/console", "/console/", "/console/api/locks", "/console/api/break", "/console/api/session"],
  ...["/v1/locks", "/v1/locks/a/leases/b", "/v1/health"],
];
const PIECES = [
  ...["//", "/\\", "\\", "*", "?", "#", "@", ":", "[", "]", "http://", "http://[", "http://[::1"],
  ...["%", "%zz", "%E0%A4%A", "%2f", "..", "\0", "\u00ff", " ", "\t"],
];
const VERSIONS = ["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "", "ICY"];
const HEADERS = [
  "Accept: text/html",
  "Content-Type: application/json",
  "Content-Length: 5",
  "Content-Length: -1",
  "Content-Length: 99999999999999999999",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip",
  "Expect: 100-continue",
  "Expect: nothing",
  "Connection: upgrade",
  "Upgrade: websocket",
  "Host: evil.example",
  "Host: [",
  "Cookie: =;;=\u00ff",
  "Sec-Fetch-Site: cross-site",
  "Sec-Fetch-Site: same-origin",
  "X-Holdfast-Principal: \u00e9",
  ": no name",
  "no colon",
];
const BODIES = ["", "{", "{}", "null", "5\r\n{", "0\r\n\r\n", "zz\r\n", "\0\0\0\0\0"];

/** A listener in a process of its own. */
interface Listener {
  readonly port: number;
  /** A path with its answer's status. */
  readonly known: readonly [path: string, status: number];
  /** Resolves when the process ends. */
  readonly ended: Promise<unknown>;
  /** Returns what it wrote on stderr. */
  readonly end: () => Promise<string>;
}

const HEALTHY = ["/v1/health", 200] as const;

async function npmStart(): Promise<Listener> {
  const file = fileURLToPath(new URL("../../../infra/local/start.ts", import.meta.url));
  const env = plainEnvironment({ PORT: "0", HOLDFAST_ENGINE: "memory" });
  const child = spawn(process.execPath, ["--import", "tsx", file], { env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "exit");
  const errors = text(child.stderr);
  let printed = "";
  for await (const chunk of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    printed += String(chunk);
    if (printed.includes("Ctrl-C")) break;
  }
  child.stdout.resume();
  const end = async (): Promise<string> => {
    child.kill("SIGKILL");
    await ended;
    return errors;
  };
  return { port: portIn(printed), known: HEALTHY, ended, end };
}

async function holdfast(args: readonly string[], known: Listener["known"]): Promise<Listener> {
  const running = start([...args, "--port", "0"], {});
  const printed = await running.printed(/Ctrl-C/);
  const end = async (): Promise<string> => {
    running.signal("SIGKILL");
    return (await running.ended).stderr;
  };
  return { port: portIn(printed), known, ended: running.ended, end };
}

function portIn(printed: string): number {
  return Number(/http:\/\/127\.0\.0\.1:(\d+)/.exec(printed)?.[1]);
}

/** Returns the bytes of a request that may be anything, and may be cut off. */
function anyRequest(random: Random, port: number): Buffer {
  const one = <T>(list: readonly T[]): T => list[random.whole(0, list.length - 1)]!;
  const some = <T>(list: readonly T[], most: number): readonly T[] => Array.from({ length: random.whole(0, most) }, () => one(list));
  const target = [...some(TARGETS, 1), ...some(PIECES, 3)].join("") + (random.unit() < 0.01 ? "a".repeat(20_000) : "");
  const host = random.unit() < 0.8 ? [`Host: 127.0.0.1:${port}`] : [];
  const lines = [`${one(METHODS)} ${target} ${random.unit() < 0.8 ? VERSIONS[0] : one(VERSIONS)}`, ...host, ...some(HEADERS, 4)];
  const whole = Buffer.from(`${lines.join("\r\n")}\r\n\r\n${one(BODIES)}`, "latin1");
  return random.unit() < 0.25 ? whole.subarray(0, random.whole(0, whole.length)) : whole;
}

/** Sends the bytes on a socket of their own, waits for the first bytes of an answer if `waits`, and cuts the connection. */
async function send(port: number, bytes: Buffer, waits: boolean): Promise<void> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  await new Promise<void>((resolve) => {
    socket.once("close", () => resolve()).once("data", () => resolve());
    socket.once("connect", () => {
      // A half request gets no answer until its sender ends it.
      if (waits) socket.end(bytes);
      else socket.write(bytes, () => resolve());
    });
  });
  socket.resetAndDestroy(); // Leaves no port behind that waits.
}

describe("whatever a socket sends", { timeout: SENDING_MS }, () => {
  let dev: Listener;
  const listeners: Record<string, Listener> = {};
  beforeAll(async () => {
    listeners["npm start"] = await npmStart();
    listeners["holdfast dev"] = dev = await holdfast(["dev"], HEALTHY);
    listeners["holdfast ui"] = await holdfast(["ui", "--url", `http://127.0.0.1:${dev.port}`], ["/", 404]);
  });
  afterAll(async () => {
    await Promise.all(Object.values(listeners).map(({ end }) => end()));
    await endAll();
  });

  it.each(["npm start", "holdfast ui", "holdfast dev"])("doesn't end %s, and isn't worth a word on stderr", async (name) => {
    const { port, known, ended, end } = listeners[name]!;
    let isRunning = true;
    void ended.then(() => (isRunning = false));
    const random = new Random(SEED);
    let left = REQUESTS;
    const sender = async (): Promise<void> => {
      for (; left > 0 && isRunning; left--) await send(port, anyRequest(random, port), random.unit() < 0.5);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, sender));
    expect([isRunning, Math.max(0, left)]).toEqual([true, 0]);
    const [path, status] = known;
    expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(status);
    expect(await end()).toBe("");
  });
});
