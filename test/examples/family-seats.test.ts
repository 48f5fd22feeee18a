/** The seats: many parties, each with all of its seats or none, and controls with single locks or without locks. */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type Booking, type BoxOffice, book, plan } from "../../examples/family/seats.js";
import { type Stage, openStage } from "../../examples/family/stage.js";
import { meeting } from "./gate.js";
import { unlocked } from "./family-unlocked.js";

const SEATS = 40;
const PARTIES = 18;

let stage: Stage;
beforeAll(async () => {
  stage = await openStage({ endpoint: inject("engineEndpoint") });
});
afterAll(() => stage.close());

/** Two to four adjacent seats, which overlap with other parties' and are requested from either end. */
function partyOf(show: string, index: number): Booking {
  const seats = Array.from({ length: 2 + (index % 3) }, (_, next) => ((index * 7 + next) % SEATS) + 1);
  return { show, buyer: `buyer ${index}`, seats: index % 2 === 0 ? seats : seats.toReversed() };
}

const seatsOf = (buyers: readonly unknown[], buyer: string): number => buyers.filter((one) => one === buyer).length;

/** Two buyers of the same two seats, named in opposite orders. */
const crossed = (show: string): readonly [Booking, Booking] => [
  { show, buyer: "ann", seats: [1, 2] },
  { show, buyer: "bob", seats: [2, 1] },
];

describe("forty seats that eighteen parties want at once", () => {
  it("are sold once each, and every party has all of its seats or none and was charged accordingly", { timeout: 60_000 }, async () => {
    const parties = Array.from({ length: PARTIES }, (_, index) => partyOf("crowd", index));
    const charged: Booking[] = [];
    const office = (): BoxOffice => ({ locks: stage.join(), table: stage.table, charge: async (booking) => void charged.push(booking) });
    const booked = await Promise.all(parties.map((party) => book(office(), party)));
    const buyers = await plan(stage.table, "crowd", SEATS);
    const sold = parties.filter((_, index) => booked[index]);
    for (const [index, { buyer, seats }] of parties.entries()) expect(seatsOf(buyers, buyer), buyer).toBe(booked[index] ? seats.length : 0);
    expect(sold.reduce((sum, { seats }) => sum + seats.length, 0)).toBe(buyers.filter((buyer) => buyer !== undefined).length);
    expect(charged.map(({ buyer }) => buyer).toSorted()).toEqual(sold.map(({ buyer }) => buyer).toSorted());
    expect(sold.length).toBeGreaterThan(0);
    expect(sold.length).toBeLessThan(PARTIES);
  });

  it("control: without a lock, seats are sold twice", async () => {
    const both = meeting(2);
    const office = { locks: unlocked(), table: stage.table, charge: both };
    expect(await Promise.all(crossed("unlocked").map((party) => book(office, party)))).toEqual([true, true]);
    expect((await plan(stage.table, "unlocked", 2)).filter((buyer) => buyer !== undefined)).toHaveLength(2); // Four were paid for.
  });
});
