/**
 * Concurrent requests by three functions to cancel, accept and agree to a refund of one order. Under the order's key
 * they run one after the other. With the same handlers and no lock, or a lock for each operation, they overlap, and the
 * books are wrong.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type LocalShop, openShop, PRICE } from "../../examples/orders/local.js";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { meet, NAMES } from "./orders-meeting.js";
import { keyPerOperation, withoutLocks } from "./orders-unlocked.js";

const ROUNDS = 6;
/** The books after a paid order for two pieces was undone. */
const UNDONE = { givenBack: 2 * PRICE, pickups: 0, restocked: 2 };
const SENT_AND_REFUNDED = { givenBack: 2 * PRICE, pickups: 1, restocked: 0 };

describe.each(["table", "service"])("cancel, accept and agree to a refund, at once and by way of the %s", (way) => {
  let local: LocalShop;
  let gateway: Gateway;
  let table: FreshTable;
  beforeAll(async () => {
    table = await freshTable();
    gateway = await startGateway({ handler: compose(table.env, { log: () => undefined }), port: 0 });
    local = await openShop({ endpoint: inject("engineEndpoint"), url: way === "service" ? gateway.url : undefined });
  });
  afterAll(async () => {
    await local.close();
    await gateway.close();
    table.client.destroy();
  });

  it("come one after the other: cancelled, there is nothing left to accept or to agree to", async () => {
    const met = await meet(local, "cancel");
    expect(met).toMatchObject({ mostInside: 1, statuses: { cancel: 200, accept: 409, agree: 409 }, end: "CANCELLED", books: UNDONE });
    expect(met.bodies.accept).toMatchObject({ error: "not-allowed", status: "CANCELLED" });
  });

  it("come one after the other: agreed to, there is nothing left to accept or to cancel", async () => {
    const met = await meet(local, "agree");
    expect(met).toMatchObject({ mostInside: 1, statuses: { cancel: 409, accept: 409, agree: 200 }, end: "REFUNDED", books: UNDONE });
  });

  it("come one after the other: accepted, it can't be cancelled, and agreeing gives back the money and not the goods", async () => {
    const met = await meet(local, "accept");
    expect(met).toMatchObject({ mostInside: 1, statuses: { cancel: 409, accept: 200, agree: 200 }, end: "REFUNDED" });
    expect(met.books).toEqual(SENT_AND_REFUNDED);
  });

  it("come one after the other, whoever is first: the books are right each time", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { mostInside, statuses, end, books } = await meet(local, undefined);
      expect(mostInside).toBe(1);
      expect([end, books], JSON.stringify(statuses)).toEqual(
        statuses.cancel === 200 ? ["CANCELLED", UNDONE] : ["REFUNDED", statuses.accept === 200 ? SENT_AND_REFUNDED : UNDONE],
      );
    }
  });

  describe.each([
    ["no lock", withoutLocks],
    ["a lock for each operation", keyPerOperation],
  ])("control: with %s", (_which, locksOf) => {
    it.each(NAMES)("all three are at the order at once, all three succeed, and the books are wrong; first %s", async (first) => {
      const met = await meet(local, first, locksOf);
      expect(met).toMatchObject({ mostInside: 3, statuses: { cancel: 200, accept: 200, agree: 200 } });
      // Two pieces left the shelf and four came back; and the buyer gets the money and the goods.
      expect(met.books).toEqual({ givenBack: 2 * PRICE, pickups: 1, restocked: 4 });
    });
  });
});
