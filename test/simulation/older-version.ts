/**
 * A function of the version that knew no sleepers, on the same table. It refuses the second format, and it carries the mark of a sleeper along
 * unread, as any field of a newer version. So without the second format it would let an offer to a sleeper lapse as a poller's.
 */
import { type TableWorld, TableClient } from "./dynamo/table-client.js";
import { type Value, type ValueMap, isList, isMap } from "./dynamo/values.js";
import type { Process } from "./world.js";

/** The mark of a sleeper, and a name for it that the production code doesn't know. */
const MARK = "z";
const UNREAD = "zy";
/** The format that the older version knows, the one that it doesn't know, and one that the production code doesn't know. */
const KNOWN = 1;
const UNKNOWN = 2;
const BEYOND = 99;

/** Returns a client that shows the production code each item as the older version sees it. */
export function olderClient(shared: TableWorld, process: Process): TableClient {
  const client = new TableClient(shared, process);
  const send = client.send.bind(client);
  client.send = async ({ operation, input }) => {
    const values = input["ExpressionAttributeValues"] as ValueMap | undefined;
    const sent = values && renamed({ ...values, ...(values[":format"] === UNKNOWN && { ":format": KNOWN }) }, UNREAD, MARK);
    try {
      return seen(await send({ operation, input: sent ? { ...input, ExpressionAttributeValues: sent } : input }));
    } catch (error) {
      if (error instanceof Error) Object.assign(error, seen(error));
      throw error;
    }
  };
  return client;
}

/** Returns the items of an answer or an error as the older version sees them. */
function seen(answer: object): object {
  const items = Object.entries(answer).filter(([name, value]) => (name === "Item" || name === "Attributes") && isMap(value as Value));
  return { ...answer, ...Object.fromEntries(items.map(([name, item]) => [name, asOlder(item as ValueMap)])) };
}

/** An item is plain in an answer, and in DynamoDB's own form in an error. */
function asOlder(item: ValueMap): ValueMap {
  const { fv: format } = item;
  if (isMap(format)) return format["N"] === String(UNKNOWN) ? { ...item, fv: { N: String(BEYOND) } } : renamed(item, MARK, UNREAD);
  return format === UNKNOWN ? { ...item, fv: BEYOND } : renamed(item, MARK, UNREAD);
}

/** Returns the value with another name for the mark, wherever it is. */
function renamed<V extends Value>(value: V, from: string, to: string): V {
  if (isList(value)) return value.map((one) => renamed(one, from, to)) as unknown as V;
  if (!isMap(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name === from ? to : name, renamed(member, from, to)] as const);
  return Object.fromEntries(members) as unknown as V;
}
