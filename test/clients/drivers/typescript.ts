/** The driver of the SDK over HTTP (docs/write-a-client.md). */
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import {
  type Lease,
  type LeaseSet,
  type LockClient,
  type Run,
  createLockClient,
  FinalError,
  key,
  LockError,
  LockLostError,
} from "../../../lib/index.js";
import { LockTimeoutError, RunFailedError } from "../../../lib/index.js";

/** A run whose work waits for `return` or `throw`. */
interface Begun {
  readonly run: Run;
  readonly end: (how: { readonly value: unknown } | { readonly error: Error }) => void;
  readonly over: Promise<string>;
}

let locks: LockClient;
let leases = new Map<string, Lease | LeaseSet>();
let runs = new Map<string, Begun>();
/** Ends the call under way. */
let interruption = new AbortController();
/** Sets the clock right again. */
let unshift = (): unknown => undefined;
/** Returns the bearer token. */
let token = (): string => "scripted-token-0123456789";

/** The message of the work's error. */
const THROWN = "thrown by the work";

const seconds = (word = "0"): number => Number(word.replace(/s$/, "")) * 1000;

/** Returns the value after a word of the command; undefined without it. */
function after(words: readonly string[], name: string): string | undefined {
  const at = words.indexOf(name);
  return at < 0 ? undefined : words[at + 1];
}

function refused(error: unknown): string {
  if (interruption.signal.aborted) return "interrupted";
  if (error instanceof RunFailedError) return `failed ${JSON.stringify(error.message)}`;
  if (error instanceof Error && error.message === THROWN) return `failed ${JSON.stringify(THROWN)}`;
  if (error instanceof LockLostError) return "lost";
  if (error instanceof LockTimeoutError) return "busy";
  const { message } = error as Error;
  const { code, definite } = error instanceof LockError ? error : { code: "error", definite: false };
  return `refused ${code} ${definite ? "definite" : "perhaps"} ${message.replaceAll(/\s+/g, " ")}`;
}

const held = (name: string): Pick<Lease, "isHeld" | "progress" | "signal"> | undefined => runs.get(name)?.run ?? leases.get(name);

async function runOnce(name: string, words: readonly string[], payload: unknown): Promise<string> {
  return new Promise((resolve) => {
    const options = {
      leaseMs: seconds(words[0]),
      waitMs: seconds(after(words, "wait")),
      signal: interruption.signal,
      ...(payload !== undefined && { payload }),
    };
    const over: Promise<string> = locks
      .runOnce(name, options, async (run) => {
        return new Promise((done, fail) => {
          const end: Begun["end"] = (how) => ("error" in how ? fail(how.error) : done(how.value));
          runs.set(name, { run, end, over });
          resolve(`began ${run.attempt} ${run.isHeld() ? "yes" : "no"}`);
        });
      })
      .then(({ value }) => `result ${JSON.stringify(value)}`, refused);
    void over.then(resolve);
  });
}

const UNUSUAL: Readonly<Record<string, () => unknown>> = {
  unkeepable: () => new Map([[1, 2]]),
  large: () => "x".repeat(300_000),
  *unfinished() {
    yield 1;
  },
};

const COMMANDS: Readonly<Record<string, (name: string, words: readonly string[], line: string) => Promise<string> | string>> = {
  open(url, [word]) {
    unshift();
    token = () => "scripted-token-0123456789";
    locks = createLockClient({ url, owner: "typescript", ...(word === "token" && { token: () => token() }) });
    leases = new Map();
    runs = new Map();
    return "ok";
  },
  token(text) {
    token = () => {
      if (text === "fails") throw new Error("the token's server is gone");
      return text;
    };
    return "ok";
  },
  clock(by) {
    const now = Date.now;
    const shiftMs = seconds(by);
    Date.now = () => now() + shiftMs;
    unshift = () => (Date.now = now);
    return "ok";
  },
  async acquire(name, words) {
    const limit = after(words, "limit");
    const progress = after(words, "progress");
    const lease = await locks.acquire(name, {
      leaseMs: seconds(words[0]),
      waitMs: seconds(after(words, "wait")),
      signal: interruption.signal,
      ...(words.includes("shared") && { mode: "shared" as const }),
      ...(limit !== undefined && { limit: Number(limit) }),
      ...(progress !== undefined && { progressMs: seconds(progress) }),
    });
    leases.set(name, lease);
    return `granted ${lease.fencingToken}`;
  },
  async acquire_all(names, words) {
    const keys = names.split(",").map((key) => ({ key, ...(words.includes("shared") && { mode: "shared" as const }) }));
    const lease = await locks.acquireAll(keys, {
      leaseMs: seconds(words[0]),
      waitMs: seconds(after(words, "wait")),
      signal: interruption.signal,
    });
    leases.set(names, lease);
    return `granted ${Object.values(lease.fencingTokens).join(" ")}`;
  },
  "held?": (name) => (held(name)?.isHeld() ? "yes" : "no"),
  "lost?": (name) => (held(name)?.signal.aborted ? "yes" : "no"),
  progress: (name) => (held(name)?.progress() ? "yes" : "no"),
  async extend(name, [length]) {
    await leases.get(name)!.renew({ leaseMs: seconds(length) });
    return "ok";
  },
  async release(name) {
    const lease = leases.get(name)!;
    const wasHeld = lease.isHeld();
    const state = await lease.release();
    const states = typeof state === "string" ? [state] : Object.values(state);
    return wasHeld && states.every((one) => one === "released" || one === "expired") ? "released" : "lost";
  },
  run_once(name, words, line) {
    const [, payload] = / payload (.*)$/.exec(line) ?? [];
    return runOnce(name, words, payload === undefined ? undefined : JSON.parse(payload));
  },
  return(name, words, line) {
    const { end, over } = runs.get(name)!;
    end({ value: words[0] === "as" ? UNUSUAL[words[1] ?? ""]!() : JSON.parse(line.split(" ").slice(2).join(" ")) });
    return over;
  },
  throw(name, [how]) {
    const { end, over } = runs.get(name)!;
    end({ error: how === "final" ? new FinalError(THROWN) : new Error(THROWN) });
    return over;
  },
  async checkpoint(name, _words, line) {
    await runs.get(name)!.run.saveCheckpoint(JSON.parse(line.split(" ").slice(2).join(" ")));
    return "saved";
  },
  "checkpoint?": (name) => `checkpoint ${JSON.stringify(runs.get(name)!.run.checkpoint)}`,
  async take(name, words) {
    const [count = "", per] = (words[0] ?? "").split("/");
    const limiter = locks.limiter(name, { rates: [{ count: Number(count), perMs: seconds(per) }] });
    await limiter.take({ waitMs: seconds(after(words, "wait")), signal: interruption.signal });
    return "taken";
  },
  key: (_name, _words, line) => `key ${key(...(JSON.parse(line.slice("key ".length)) as (string | number)[]))}`,
  async close() {
    await locks.close();
    return "ok";
  },
};

process.on("SIGINT", () => interruption.abort());

for await (const line of createInterface({ input: process.stdin })) {
  const [verb = "", name = "", ...words] = line.split(" ");
  interruption = new AbortController();
  let reply: string;
  try {
    reply = (await COMMANDS[verb]?.(verb === "key" ? "" : decodeURIComponent(name), words, line)) ?? "can't";
  } catch (error) {
    reply = refused(error);
  }
  writeSync(1, `${reply}\n`);
}
