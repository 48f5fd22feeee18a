/** A server in front of an engine that cancels the next transactions, as if they conflicted with others on the same items. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A cancellation reason of an item, in its wire format. */
export interface Reason {
  readonly Code: string;
  readonly Message?: string;
  readonly Item?: unknown;
}

/** A running server. */
export interface TransactionConflicts {
  readonly endpoint: string;
  /** Cancels the next `times` transactions for these reasons, one for each item. */
  cancelNext(times: number, reasons: readonly Reason[]): void;
  /** The number of cancelled transactions. */
  readonly cancelled: number;
  close(): Promise<void>;
}

/** The headers that the proxy passes on unchanged. */
const HEADERS = ["authorization", "content-type", "x-amz-date", "x-amz-target", "x-amz-content-sha256"] as const;
const JSON_TYPE = { "content-type": "application/x-amz-json-1.0" };

/** Starts a server. */
export async function startTransactionConflicts(target: string): Promise<TransactionConflicts> {
  let left = 0;
  let cancelled = 0;
  let reasons: readonly Reason[] = [];
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const body = await text(incoming);
      const headers = Object.fromEntries(HEADERS.map((name) => [name, String(incoming.headers[name] ?? "")]));
      if (left > 0 && headers["x-amz-target"]?.endsWith(".TransactWriteItems")) {
        left--;
        cancelled++;
        const __type = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
        const message = `Transaction cancelled, please refer cancellation reasons for specific reasons [${reasons.map(({ Code }) => Code).join(", ")}]`;
        outgoing.writeHead(400, JSON_TYPE).end(JSON.stringify({ __type, message, CancellationReasons: reasons }));
        return;
      }
      const reply = await fetch(target, { method: "POST", headers, body });
      const answer = await reply.text();
      outgoing.writeHead(reply.status, JSON_TYPE).end(answer);
    })().catch(() => outgoing.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cancelNext(times, why) {
      left = times;
      reasons = why;
    },
    get cancelled() {
      return cancelled;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
