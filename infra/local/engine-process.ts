/**
 * An engine as a child process that never outlives its parent. Between the two stands a shell, in a
 * session of its own, that waits for the end of its input: it comes when the parent closes the pipe,
 * and no less when the parent is killed, and then the shell kills the engine and all its group. A Ctrl-C
 * in the terminal doesn't reach the group, so requests in flight still find their engine.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../lib/core/time.js";
import { StartError } from "./start-error.js";

/**
 * Whichever comes first, the engine's end or the parent's: nothing of the group stays, and no zombie of
 * it. The shell itself says nothing: a word into the pipe of a dead parent would end it too early.
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
/** How often a starting engine is asked whether it answers. */
const POLL_MS = 20;
/** How much of what the engine says last is kept, to be told if it fails. */
const LAST_WORDS_CHARS = 2_000;

/** What to run. `args` come after the port is known: engines don't choose a free one by themselves. */
export interface EngineCommand {
  /** For messages. */
  readonly name: string;
  readonly command: string;
  args(port: number): readonly string[];
  /** How long it may take to answer, in ms. */
  readonly startMs: number;
}

/** A running engine. */
export interface EngineProcess {
  readonly port: number;
  /** The process group of the engine and its guard. */
  readonly groupId: number;
  stop(): Promise<void>;
}

/**
 * Starts the engine on a free port of the loopback interface and waits until it answers.
 * @throws StartError when it ends before it answered, or doesn't answer in time.
 */
export async function startProcess({ name, command, args, startMs }: EngineCommand): Promise<EngineProcess> {
  const port = await freePort();
  const guard = spawn("sh", ["-c", GUARD, name, command, ...args(port)], { detached: true, stdio: ["pipe", "ignore", "pipe"] });
  let lastWords = "";
  guard.stderr.setEncoding("utf8").on("data", (text: string) => {
    lastWords = (lastWords + text).slice(-LAST_WORDS_CHARS);
  });
  guard.stdin.on("error", () => undefined); // Its end is told by the event below.
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
    // Asked last, so that an engine which ended because the port was taken isn't mistaken for who took it.
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

/** An engine that nobody stopped must not keep its parent from ending. */
function letParentEnd(guard: ChildProcess): void {
  guard.unref();
  for (const pipe of [guard.stdin, guard.stderr]) (pipe as Socket | null)?.unref();
}

/** Whoever stops it waits until its last child has closed the pipes, which may be after the guard itself. */
function keepAwake(guard: ChildProcess): void {
  guard.ref();
  for (const pipe of [guard.stdin, guard.stderr]) (pipe as Socket | null)?.ref();
}

/** The first line that says something, for a message of one line. */
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
