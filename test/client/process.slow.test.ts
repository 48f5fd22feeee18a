/** A waiter keeps its process alive, a held lock doesn't. Real processes. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type LockClient, createLockClient } from "../../lib/dynamodb.js";
import { startChild } from "../support/child.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";
import type { ProgramOrder } from "./program.js";

const REACHES = ["service", "table"] as const;

/** Attempts of a waiter: after that many it has been through as many pauses. */
const TRIES = 4;

let proxy: FaultProxy;
let table: FreshTable;
let gateway: Gateway;
let locks: LockClient;

beforeAll(async () => {
  proxy = await startFaultProxy();
  table = await freshTable(proxy.endpoint);
  gateway = await startGateway({
    handler: compose(table.env, { log: () => undefined }),
    port: 0,
  });
  locks = createLockClient(table.place);
});

afterAll(async () => {
  await locks.close();
  await gateway.close();
  table.client.destroy();
  await proxy.close();
});

function start(order: ProgramOrder) {
  const aws = {
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_ENDPOINT_URL_DYNAMODB: table.endpoint,
  };
  return startChild("program.ts", import.meta.url, order, {
    ...aws,
    HOLDFAST_URL: gateway.url,
    HOLDFAST_TABLE: table.tableName,
  });
}

describe.each(REACHES)("a program that reaches the %s", (reaches) => {
  it("and holds a lease for a minute ends by itself: its timers and sockets don't keep it", async () => {
    const key = `forgotten:${reaches}`;
    const program = start({ reaches, does: "holds", key });
    expect(await program.reported("acquired")).toMatchObject({ held: true });
    expect(await program.ended).toEqual({ code: 0, stderr: "" });
    expect((await locks.inspect(key)).holders).toHaveLength(1);
  });

  it("and waits for a lock stays until it has it", async () => {
    const key = `awaited:${reaches}`;
    const theirs = await locks.acquire(key);
    proxy.ledger.clear();
    const program = start({ reaches, does: "waits", key });
    const looks = (): number => proxy.ledger.requests["GetItem"] ?? 0;
    const tries = async (): Promise<void> => {
      while (looks() < TRIES) await delay(20);
    };
    await Promise.race([tries(), program.ended]);
    expect(looks()).toBeGreaterThanOrEqual(TRIES);
    await theirs.release();
    expect(await program.reported("acquired")).toMatchObject({ held: true });
    expect(await program.ended).toEqual({ code: 0, stderr: "" });
  });
});

describe.each(REACHES)("a program that reaches the %s and is told to end by SIGTERM", (reaches) => {
  async function ended(order: Partial<ProgramOrder>) {
    const key = `ending:${reaches}:${JSON.stringify(order).length}`;
    const program = start({ reaches, does: "serves", key, ...order });
    await program.reported("acquired");
    program.signal("SIGTERM");
    const worked = order.does === "works" ? await program.reported("worked").catch(() => undefined) : undefined;
    const { code } = await program.ended;
    return { code, holders: (await locks.inspect(key)).holders.length, ...(worked && { held: worked["held"] as boolean }) };
  }
  /** A lease of acquire() may be in use by code that nobody knows of: a client waits for its release, unless it is told not to. */
  const atOnce = { closeOnSigterm: true, drainMs: 0 } as const;

  it("lets its work end under the lock, frees the key, and ends", async () => {
    expect(await ended({ does: "works", closeOnSigterm: true })).toEqual({ code: null, holders: 0, held: true });
  });

  it("control: without time, the work goes on without the lock or is cut off", async () => {
    expect((await ended({ does: "works", ...atOnce })).held).not.toBe(true);
  });

  it("frees what it holds, if its client was asked to, and ends as it would have", async () => {
    expect(await ended({ ...atOnce })).toEqual({ code: null, holders: 0 });
  });

  it("frees what one of its clients holds, though the others are closed before it", async () => {
    expect(await ended({ ...atOnce, hasIdleClients: true })).toEqual({ code: null, holders: 0 });
    expect(await ended({ ...atOnce, hasIdleClients: true, ownStatus: 3 })).toEqual({ code: 3, holders: 0 });
  });

  it("frees what it holds, and leaves its end to the listener that it has", async () => {
    expect(await ended({ ...atOnce, ownStatus: 3 })).toEqual({ code: 3, holders: 0 });
  });

  it("control: nobody asked, and the key stays held", async () => {
    expect(await ended({})).toEqual({ code: null, holders: 1 });
  });
});
