/**
 * A partner with limits, in a process of its own: it answers every call, and counts by its own monotonic clock how many come and how many
 * run at once. A call is over when it is answered, or when its caller is gone.
 */
import { once } from "node:events";
import { writeSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import "../support/end-with-parent.js";

/** A call, as its caller sends it. */
export interface Call {
  readonly key: string;
  readonly cost: number;
  /** The time that the partner works on it, in ms. */
  readonly workMs: number;
  /** The earliest time at which it was allowed to start, in µs of the machine's monotonic clock, which all processes share. */
  readonly dueAt: number;
}

/** A call that came. Times are in µs of the monotonic clock. */
export interface Came extends Call {
  readonly at: number;
  /** The number of calls of its key that ran just after it came, itself included. */
  readonly running: number;
  /** Absent while it runs. */
  endedAt?: number;
}

const came: Came[] = [];
const running = new Map<string, number>();
const nowUs = (): number => Number(process.hrtime.bigint() / 1000n);

const server = createServer((request, response) => {
  void (async () => {
    if (request.method === "GET") return void response.end(JSON.stringify(came));
    const call = (await json(request)) as Call;
    const count = (running.get(call.key) ?? 0) + 1;
    running.set(call.key, count);
    const one: Came = { ...call, at: nowUs(), running: count };
    came.push(one);
    const end = (): void => {
      if (one.endedAt !== undefined) return;
      one.endedAt = nowUs();
      running.set(call.key, (running.get(call.key) ?? 0) - 1);
    };
    response.on("close", end);
    setTimeout(() => {
      end();
      response.end("{}");
    }, call.workMs);
  })().catch(() => request.socket.destroy());
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
writeSync(1, `${JSON.stringify({ event: "ready", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`);
