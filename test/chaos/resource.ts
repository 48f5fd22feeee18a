/**
 * The guarded resource, in a process of its own: a counter and an append-only log for each key. A read raises the key's
 * fence to the reader's token, and a write with a smaller token, or a second one with the same, is refused.
 */
import { once } from "node:events";
import { writeSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import "../support/end-with-parent.js";

/** The resource's instructions. */
export interface ResourceOrder {
  /** False: tokens are logged and not compared. */
  readonly comparesTokens: boolean;
}

/** A write that the resource accepted. */
export interface Entry {
  readonly token?: number;
  readonly value: number;
  readonly hold: string;
}

/** One key's data. */
export interface Guarded {
  readonly count: number;
  readonly log: readonly Entry[];
  /** The reads and writes that were refused by their token. */
  readonly refusals: number;
}

/** A request. Without a value it reads the count, else it sets it. */
export interface Access {
  readonly key: string;
  readonly token?: number;
  readonly value?: number;
  readonly hold: string;
}

const { comparesTokens } = JSON.parse(process.argv[2] ?? "") as ResourceOrder;
const keys = new Map<string, { count: number; log: Entry[]; refusals: number; readBy: number; writtenBy: number }>();

function refuses({ key, token, value, hold }: Access): boolean {
  const data = keys.get(key) ?? { count: 0, log: [], refusals: 0, readBy: 0, writtenBy: 0 };
  keys.set(key, data);
  const isRefused = token !== undefined && comparesTokens && (token < data.readBy || (value !== undefined && token <= data.writtenBy));
  if (isRefused) data.refusals += 1;
  if (isRefused) return true;
  data.readBy = Math.max(data.readBy, token ?? 0);
  if (value !== undefined) {
    data.writtenBy = Math.max(data.writtenBy, token ?? 0);
    data.count = value;
    data.log.push({ value, hold, ...(token !== undefined && { token }) });
  }
  return false;
}

const server = createServer((request, response) => {
  void (async () => {
    if (request.method === "GET") {
      response.end(JSON.stringify(Object.fromEntries(keys)));
      return;
    }
    const access = (await json(request)) as Access;
    response.statusCode = refuses(access) ? 409 : 200;
    response.end(JSON.stringify({ count: keys.get(access.key)?.count }));
  })();
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
writeSync(1, `${JSON.stringify({ event: "ready", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`);
