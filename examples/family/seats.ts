/**
 * Seats at a show, booked by parties of two to four: all of a party's seats or none. The card is charged in between,
 * which no DynamoDB transaction covers. The seats are locked as one set, so no buyer waits for a seat while holding
 * another. There is no deadlock, in whatever order the seats are requested.
 */
import { TransactWriteCommand } from "@aws-sdk/lib-dynamodb";
import { type LockClient, key } from "../../lib/index.js";
import { play } from "./stage.js";
import { type Table, fencedValue, valueOf } from "./table.js";

/** The dependencies of selling seats. */
export interface BoxOffice {
  readonly locks: Pick<LockClient, "withLocks">;
  readonly table: Table;
  /** Charges the party's card. A retry needs an idempotency key of its own: see the payment examples. */
  readonly charge: (booking: Booking) => Promise<void>;
}

/** A party and the seats it wants. */
export interface Booking {
  readonly show: string;
  readonly seats: readonly number[];
  readonly buyer: string;
}

/** Books all of the seats. Returns false if one of them is taken; then none is booked and nothing is charged. */
export async function book({ locks, table, charge }: BoxOffice, booking: Booking): Promise<boolean> {
  const { show, seats, buyer } = booking;
  const keyOf = (seat: number): string => key("SEAT", show, seat);
  return locks.withLocks(seats.map(keyOf), async (set) => {
    const buyers = await Promise.all(seats.map((seat) => valueOf(table, keyOf(seat))));
    if (buyers.some((other) => other !== undefined)) return false;
    await charge(booking);
    set.assertHeld(); // The charge may have outlasted the lease.
    const TransactItems = seats.map((seat) => ({ Update: fencedValue(table, keyOf(seat), buyer, set.fencingTokens[keyOf(seat)]!) }));
    await table.documents.send(new TransactWriteCommand({ TransactItems }));
    return true;
  });
}

/** Returns the party of each of the seats 1 to `count`. */
export function plan(table: Table, show: string, count: number): Promise<readonly unknown[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => valueOf(table, key("SEAT", show, index + 1))));
}

await play(import.meta.url, async ({ join, table }) => {
  const charge = (): Promise<void> => Promise.resolve();
  const parties: readonly (readonly [buyer: string, ...seats: number[]])[] = [
    ["ann", 1, 2, 3],
    ["bob", 3, 4],
    ["eve", 4, 3, 2, 1],
    ["joe", 5, 6],
  ];
  const booked = await Promise.all(
    parties.map(([buyer, ...seats]) => book({ locks: join(), table, charge }, { show: "hamlet", seats, buyer })),
  );
  for (const [index, [buyer, ...seats]] of parties.entries()) {
    const has = (await plan(table, "hamlet", 6)).filter((other) => other === buyer).length;
    console.log(`${buyer} wants ${seats.join(" ")}: ${booked[index] ? "booked" : "none"}, has ${has} of ${seats.length}`);
  }
});
