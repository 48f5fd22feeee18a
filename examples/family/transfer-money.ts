/**
 * Moves money from one account to another, with an approval by a third party in between. Both accounts are locked as
 * one set, so transfers in opposite directions don't deadlock. Both balances are written in one transaction, each under
 * its key's own token: a process that froze before the write changes neither.
 */
import { TransactWriteCommand } from "@aws-sdk/lib-dynamodb";
import { type LockClient, key } from "../../lib/index.js";
import { play } from "./stage.js";
import { type Table, fencedValue, valueOf, write } from "./table.js";

export interface Bank {
  readonly locks: Pick<LockClient, "withLocks">;
  readonly table: Table;
  /** Asks a third party for approval. This is slow. */
  readonly approve: (transfer: Transfer) => Promise<boolean>;
}

/** An amount to move between two accounts. */
export interface Transfer {
  readonly from: string;
  readonly to: string;
  readonly amount: number;
}

/** Moves the amount. Returns false if the balance is too low or the transfer isn't approved. */
export async function transfer({ locks, table, approve }: Bank, order: Transfer): Promise<boolean> {
  const { from, to, amount } = order;
  const [source, target] = [key("ACCOUNT", from), key("ACCOUNT", to)];
  if (source === target) throw new RangeError("from and to are one account");
  return locks.withLocks([source, target], async ({ fencingTokens }) => {
    const [has, gets] = [await balance(table, from), await balance(table, to)];
    if (has < amount || !(await approve(order))) return false;
    const TransactItems = [
      { Update: fencedValue(table, source, has - amount, fencingTokens[source]!) },
      { Update: fencedValue(table, target, gets + amount, fencingTokens[target]!) },
    ];
    await table.documents.send(new TransactWriteCommand({ TransactItems }));
    return true;
  });
}

/** Returns the account's balance. */
export async function balance(table: Table, account: string): Promise<number> {
  return Number(await valueOf(table, key("ACCOUNT", account)));
}

/** Opens an account with the given balance. */
export async function openAccount(table: Table, account: string, amount: number): Promise<void> {
  await write(table, key("ACCOUNT", account), amount, 0);
}

await play(import.meta.url, async ({ join, table }) => {
  for (const account of ["ann", "bob"]) await openAccount(table, account, 100);
  const bank = (): Bank => ({ locks: join(), table, approve: () => Promise.resolve(true) });
  const moved = await Promise.all([
    transfer(bank(), { from: "ann", to: "bob", amount: 30 }),
    transfer(bank(), { from: "bob", to: "ann", amount: 50 }),
    transfer(bank(), { from: "ann", to: "bob", amount: 900 }),
  ]);
  console.log("moved:", moved.join(", "));
  const [ann, bob] = [await balance(table, "ann"), await balance(table, "bob")];
  console.log(`ann ${ann}, bob ${bob}, together ${ann + bob}`);
});
