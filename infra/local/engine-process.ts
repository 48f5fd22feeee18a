/**
 * Runs an engine as a child process that never outlives its parent. Between the two, a shell in its own session waits for the end of its
 * input, which comes when the parent closes the pipe or is killed. Then the shell kills the engine's whole process group. A Ctrl-C in the
 * terminal doesn't reach the group, so requests in progress still find their engine.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../lib/core/time.js";
import { StartError } from "./start-error.js";

/**
 * The shell's script. Whether the engine or the parent ends first, no process of the group and no zombie remains. The shell itself prints
 * nothing: writing into the pipe of a dead parent would end it too early.
 */
const GUARD = `
  exec 3<&0 4>&2 2>/dev/null
  "$@" </dev/null 2>&4 3<&- 4>&- & engine=$!
  { read -r end_of_parent <&3; kill -9 "$engine"; } & reader=$!
  wait "$engine"
  kill -9 "$reader"
  wait "$reader"
  kill -9 0
`;
/** The interval at which a starting engine is polled, in ms. */
const POLL_MS = 20;
/** The part of the engine's last output that is kept for an error message, in characters. */
const LAST_WORDS_CHARS = 2_000;

/** The command to run. `args` takes the port because engines can't choose a free one themselves. */
export interface EngineCommand {
  /** The engine's name in messages. */
  readonly name: string;
  readonly command: string;
  args(port: number): readonly string[];
  /** The time limit for its first answer, in ms. */
  readonly startMs: number;
}

/** A running engine. */
export interface EngineProcess {
  readonly port: number;
  /** The process group of the engine and its watchdog. */
  readonly groupId: number;
  stop(): Promise<void>;
}

/**
 * Starts the engine on a free port of the loopback interface and waits until it answers.
 * @throws StartError if it ends before it answers, or doesn't answer in time.
 */
export async function startProcess({ name, command, args, startMs }: EngineCommand): Promise<EngineProcess> {
  const port = await freePort();
  const guard = spawn("sh", ["-c", GUARD, name, command, ...args(port)], { detached: true, stdio: ["pipe", "ignore", "pipe"] });
  let lastWords = "";
  guard.stderr.setEncoding("utf8").on("data", (text: string) => {
    lastWords = (lastWords + text).slice(-LAST_WORDS_CHARS);
  });
  guard.stdin.on("error", () => undefined); // The event below reports its end.
  const ended = once(guard, "close").catch((error: unknown) => {
    lastWords = String(error);
  });

  const groupId = guard.pid;
  const stop = async (): Promise<void> => {
    keepAwake(guard);
    guard.stdin.end();
    await ended;
  };
  const deadlineMs = systemClock.monotonicMs() + startMs;
  while (groupId !== undefined && isRunning(guard)) {
    // Check the process last: if the port was taken and the engine ended, another program answers there.
    if ((await answers(port)) && isRunning(guard)) {
      letParentEnd(guard);
      return { port, groupId, stop };
    }
    if (systemClock.monotonicMs() > deadlineMs) {
      await stop();
      throw new StartError(`The engine ${name} did not answer within ${startMs / 1000} s${quoted(lastWords)}`);
    }
    await Promise.race([delay(POLL_MS), ended]);
  }
  await ended;
  throw new StartError(`The engine ${name} could not start${quoted(lastWords)}`);
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

/** Lets the parent exit while the engine is still running. */
function letParentEnd(guard: ChildProcess): void {
  guard.unref();
  for (const pipe of [guard.stdin, guard.stderr]) (pipe as Socket | null)?.unref();
}

/** Keeps the parent alive until the last child has closed the pipes, which can be after the watchdog itself. */
function keepAwake(guard: ChildProcess): void {
  guard.ref();
  for (const pipe of [guard.stdin, guard.stderr]) (pipe as Socket | null)?.ref();
}

/** Returns the first nonempty line, for a message of one line. */
function quoted(text: string): string {
  const line = text.split("\n").find((candidate) => candidate.trim() !== "");
  return line === undefined ? "" : `: ${line.trim()}`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
