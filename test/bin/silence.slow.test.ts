/** The statements of each command that looks or operates, of a service that is killed, hung or slow: it concludes nothing without an answer. */
import { type RequestListener, type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "./in-process.js";
import { type Service, serve } from "./service.js";

/** The advice of a command that looks, of one that looks before it changes something, and of one that does not. */
const LOOKS = /\nTry again later/;
const NOTHING = /\nNothing was changed/;
const CHANGES = /\n(Nothing was changed|It may have been done or not\. Look before)/;
/** Each command, what it says of this service, and its advice without an answer. */
const VIEWS: readonly (readonly [args: readonly string[], says: RegExp, advice: RegExp])[] = [
  [["ls", "HELD"], /^KEY .*\nHELD +checkout-7/, LOOKS],
  [["ls", "FREE"], /^holdfast: nobody holds a key that begins with FREE\n$/, LOOKS],
  [["show", "HELD"], /^HELD is held by checkout-7/, LOOKS],
  [["show", "FREE"], /^FREE is free/, LOOKS],
  [["show", "--run", "DONE"], /^DONE succeeded/, LOOKS],
  [["show", "--run", "NEVER"], /no run/, LOOKS],
  [["runs", "DONE"], /\nDONE +succeeded/, LOOKS],
  [["runs", "NEVER"], /^holdfast: there are no such runs\n$/, LOOKS],
  [["ticks", "NEVER", "--within", "1h"], /no occurrence of NEVER was done within 1h/, LOOKS],
  [["limits", "RATE"], /\nRATE +5 in 1h \(bursts of 2\)/, LOOKS],
  [["limits", "NEVER"], /^holdfast: no limit that begins with NEVER is in use/, LOOKS],
  [["break", "FREE", "--reason", "a test"], /nobody holds FREE/, NOTHING],
  [["break", "FREE", "--reason", "a test", "--token", "1"], /Nobody holds FREE/, CHANGES],
  [["reset", "NEVER", "--reason", "a test"], /Nothing was run under NEVER/, NOTHING],
  [["limits", "reset", "NEVER", "--reason", "a test"], /NEVER/, CHANGES],
];
/** The statements that need an answer. */
const CONCLUDED = /[Nn]obody holds|Nothing was run|no such runs|no occurrence|no limit|is free|is held|no run|checkout-7/;

let service: Service;
const servers: Server[] = [];

/** Serves by `answer`, and returns the URL. */
async function behind(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Passes a request on after a second. */
const late: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    setTimeout(() => {
      const { method = "GET", headers, url = "/" } = request;
      const body = chunks.length > 0 ? Buffer.concat(chunks) : undefined;
      const type = headers["content-type"];
      void fetch(`${service.env["HOLDFAST_URL"]}${url}`, {
        method,
        ...(type && { headers: { "content-type": type } }),
        ...(body && { body }),
      }).then(async (answer) => response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text()));
    }, 1000);
  });
};

const urls: Record<string, string> = {};

beforeAll(async () => {
  service = await serve();
  const { locks } = service;
  await locks.acquire("HELD", { owner: "checkout-7", leaseMs: 600_000 });
  await locks.runOnce("DONE", () => 1);
  await locks.limiter("RATE", { rates: [{ count: 5, perMs: 3_600_000 }] }).take();
  const gone = await behind(() => undefined);
  await new Promise((resolve) => servers.pop()!.close(resolve));
  Object.assign(urls, { killed: gone, hung: await behind(() => undefined), slow: await behind(late) });
});
afterAll(async () => {
  for (const server of servers) server.closeAllConnections();
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  await service.close();
});

const said = async (state: string, args: readonly string[]) => {
  const { status, stdout, stderr } = await run(args, { ...service.env, HOLDFAST_URL: urls[state]! });
  return { status, text: stdout + stderr };
};

describe.concurrent.each(VIEWS)("holdfast %j", (args, says, advice) => {
  it("says what is so, of a service that is slow", async () => {
    const { text } = await said("slow", args);
    expect(text).toMatch(says);
    expect(text).not.toMatch(/no answer/);
  });

  it.each(["killed", "hung"])("concludes nothing of a service that is %s, and names where it asked", async (state) => {
    const { status, text } = await said(state, args);
    // Where nobody ever answered, the URL may be wrong.
    expect(status).toBe(state === "killed" ? 78 : 69);
    expect(text).toMatch(/^holdfast: .*no answer/);
    expect(text).toContain(new URL(urls[state]!).host);
    expect(text).toMatch(state === "killed" ? /\nStart one, which has no lock yet, with: holdfast dev/ : advice);
    expect(text.replace(args[0]!, "")).not.toMatch(CONCLUDED);
  });
});
