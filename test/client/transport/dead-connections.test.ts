/**
 * Kept connections that a NAT or a load balancer has forgotten: nothing that is sent on them arrives, and nobody says so. Regression: they were
 * tried one by one: with 30 of them the first answer took 21.6 s, with 50 a lease of 30 s was lost.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { once } from "node:events";
import { type IncomingMessage, Agent, createServer, request } from "node:http";
import { type AddressInfo, type Socket, connect, createServer as createTcpServer } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { LazyAbort } from "../../../lib/client/wire/lazy-abort.js";
import { senderBy } from "../../../lib/client/wire/send.js";
import { builtInCalls } from "../../../lib/store/dynamo/built-in-calls.js";
import { environmentSettings } from "../../../lib/store/dynamo/environment-settings.js";
import { connections } from "../../../lib/store/dynamo/http-sender.js";
import { standardRetries } from "../../../lib/store/dynamo/retries.js";
import { VirtualClock } from "../../../lib/testing/virtual-clock.js";
import { freshTable } from "../../support/engine.js";
import { sdkCalls } from "../../support/sdk-calls.js";

/** Forwards connections. Those that are open when it forgets them go nowhere from then on, and stay open. */
class Nat {
  readonly links = new Set<{ readonly socket: Socket; isForgotten: boolean }>();
  /** The requests that were sent on forgotten connections. */
  swallowed = 0;
  onSwallowed: () => void = () => undefined;
  readonly #server = createTcpServer((socket) => {
    const { hostname, port } = new URL(this.target);
    const onward = connect(Number(port), hostname);
    const link = { socket, isForgotten: false };
    this.links.add(link);
    for (const one of [socket, onward]) one.on("error", () => undefined);
    socket.on("data", (data) => {
      if (!link.isForgotten) return void onward.write(data);
      this.swallowed += 1;
      this.onSwallowed();
    });
    onward.on("data", (data) => void socket.write(data));
    socket.on("close", () => {
      this.links.delete(link);
      onward.destroy();
    });
    onward.on("close", () => void (link.isForgotten || socket.destroy()));
  });

  constructor(readonly target: string) {}

  async open(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  forgetAll(): void {
    for (const link of this.links) link.isForgotten = true;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const { socket } of this.links) socket.destroy();
    await once(this.#server, "close");
  }
}

/** One attempt at a request, and the end of its time. */
interface Way {
  readonly attempt: () => Promise<unknown>;
  readonly timeOut: () => Promise<void>;
}

const PLACE = { region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" } };
const service = createServer((_request, response) => void response.writeHead(204).end());
let tableName: string;
beforeAll(async () => {
  ({ tableName } = await freshTable());
  service.listen(0, "127.0.0.1");
  await once(service, "listening");
});
afterAll(() => {
  service.close();
  service.closeAllConnections();
});

const urlOfService = (): string => `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
const read = () => ({ TableName: tableName, Key: { p: "a", k: "b" }, ConsistentRead: true }) as const;
const inTime = (clock: VirtualClock, ms: number) => async () => clock.advance(ms);

const WAYS: Readonly<Record<string, { readonly target: () => string; readonly via: (endpoint: string) => Way }>> = {
  "past the SDK": {
    target: () => inject("engineEndpoint"),
    via(endpoint) {
      const deps = { clock: new VirtualClock(), random: () => 0 };
      const settings = environmentSettings({}, deps, { ...PLACE, endpoint });
      if (typeof settings === "string") throw new Error(settings);
      const calls = builtInCalls(
        { ...settings, correctsClock: false, retries: () => Promise.resolve(standardRetries(1, deps)) },
        deps.clock,
      );
      return { attempt: () => calls.getItem(read()), timeOut: inTime(deps.clock, 2000) };
    },
  },
  "through a client of the SDK without time limits": {
    target: () => inject("engineEndpoint"),
    via(endpoint) {
      const clock = new VirtualClock();
      const calls = sdkCalls(new DynamoDBClient({ ...PLACE, endpoint }), clock);
      return { attempt: () => calls.getItem(read()), timeOut: inTime(clock, 3000) };
    },
  },
  "over HTTP": {
    target: urlOfService,
    via(url) {
      const send = senderBy(undefined);
      let options = new LazyAbort();
      const attempt = () => send(url, { method: "GET", headers: {}, body: undefined }, (options = new LazyAbort()));
      return { attempt, timeOut: async () => options.abort() };
    },
  },
};

describe.each(Object.entries(WAYS))("%s", (_name, { target, via }) => {
  let nat: Nat;
  beforeEach(() => (nat = new Nat(target())));
  afterEach(() => nat.close());

  it.each([1, 10, 30, 50])("the second attempt is answered when %i kept connections are dead", async (count) => {
    const { attempt, timeOut } = via(await nat.open());
    await Promise.all(Array.from({ length: count }, attempt));
    expect(nat.links.size).toBe(count);
    nat.forgetAll();
    const reached = new Promise<void>((resolve) => (nat.onSwallowed = resolve));
    const first = attempt().catch((error: unknown) => error);
    await reached;
    await timeOut();
    expect(await first).toBeInstanceOf(Error);
    await attempt();
    expect(nat.swallowed).toBe(1);
  });
});

it("control: with Node's connections alone, the second attempt is sent on the next dead one", async () => {
  const nat = new Nat(urlOfService());
  const url = await nat.open();
  const agent = new Agent({ keepAlive: true });
  const ask = () =>
    request(url, { agent })
      .on("error", () => undefined)
      .end();
  const answered = async (sent: ReturnType<typeof ask>) => {
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    await once(response.resume(), "end");
  };
  await Promise.all(Array.from({ length: 10 }, () => answered(ask())));
  nat.forgetAll();
  for (let dead = 1; dead <= 2; dead++) {
    const reached = new Promise<void>((resolve) => (nat.onSwallowed = resolve));
    const sent = ask();
    await reached;
    sent.destroy();
  }
  expect(nat.swallowed).toBe(2);
  agent.destroy();
  await nat.close();
});

it("a connection to the table that nobody uses is closed before a gateway forgets it", async () => {
  expect((connections()["https:"] as unknown as { readonly options: { readonly timeout: number } }).options.timeout).toBeLessThan(60_000);
  const nat = new Nat(urlOfService());
  const url = await nat.open();
  const sent = request(url, { agent: connections(50)["http:"] }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  const socket = [...nat.links][0]!.socket;
  await once(socket, "close");
  expect(nat.links.size).toBe(0);
  await nat.close();
});
