/**
 * The requests to an engine, and their capacity units. Engines report the units of successful requests. They report
 * nothing for a refused conditional write. AWS charges it like a write of the existing item, so it is counted here by
 * that item's size.
 */

/** Operations that report their consumed capacity on request. */
const READS = ["GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"];
const WRITES = ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"];
const WRITE_UNIT_BYTES = 1024;

/** The counts at the engine. */
export interface Ledger {
  /** Requests carried out or refused by the engine, by operation. */
  readonly requests: Readonly<Record<string, number>>;
  /** Units of writes, including refused writes and indexes. */
  readonly writeUnits: number;
  readonly readUnits: number;
  /** Writes whose condition failed. */
  readonly refusedWrites: number;
  clear(): void;
}

interface Consumed {
  readonly CapacityUnits?: number;
}

interface Reply {
  readonly __type?: string;
  readonly ConsumedCapacity?: Consumed | readonly Consumed[];
  readonly Item?: Item;
}

type Item = Readonly<Record<string, AttributeValue>>;

/** An attribute in its wire format, such as `{"S": "text"}`. */
type AttributeValue = Readonly<Record<string, unknown>>;

/** Adds a request for the consumed capacity to the request's input. */
export function withCapacity(target: string, input: unknown): unknown {
  return READS.includes(target) || WRITES.includes(target) ? { ReturnConsumedCapacity: "INDEXES", ...(input as object) } : input;
}

/** Creates an empty ledger. */
export function createLedger(): Ledger & { record(target: string, status: number, body: string): void } {
  const blank = () => ({ requests: new Map<string, number>(), writeUnits: 0, readUnits: 0, refusedWrites: 0 });
  let counts = blank();
  return {
    get requests() {
      return Object.fromEntries(counts.requests);
    },
    get writeUnits() {
      return counts.writeUnits;
    },
    get readUnits() {
      return counts.readUnits;
    },
    get refusedWrites() {
      return counts.refusedWrites;
    },
    clear() {
      counts = blank();
    },
    record(target, status, body) {
      counts.requests.set(target, (counts.requests.get(target) ?? 0) + 1);
      const reply = (body === "" ? {} : JSON.parse(body)) as Reply;
      if (status === 400 && reply.__type?.endsWith("#ConditionalCheckFailedException")) {
        counts.refusedWrites += 1;
        counts.writeUnits += writeUnitsOf(reply.Item ?? {});
      }
      const units = [reply.ConsumedCapacity ?? []].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
      counts[WRITES.includes(target) ? "writeUnits" : "readUnits"] += units;
    },
  };
}

/** The units that AWS charges for a write to this item: one for each started KB, at least one. */
function writeUnitsOf(item: Item): number {
  return Math.max(1, Math.ceil(mapBytes(item) / WRITE_UNIT_BYTES));
}

function mapBytes(item: Item): number {
  return Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value), 0);
}

/** By the rules of the DynamoDB developer guide; numbers take one byte for each two digits, rounded up, plus one. */
function valueBytes(value: AttributeValue): number {
  const [[type, content] = ["NULL", true]] = Object.entries(value);
  switch (type) {
    case "S":
      return Buffer.byteLength(content as string);
    case "N":
      return Math.ceil((content as string).replaceAll(/[^\d]/g, "").length / 2) + 1;
    case "B":
      return Buffer.from(content as string, "base64").length;
    case "L":
      return (content as AttributeValue[]).reduce((sum, entry) => sum + 1 + valueBytes(entry), 3);
    case "M":
      return 3 + Object.keys(content as Item).length + mapBytes(content as Item);
    case "SS":
    case "NS":
      return (content as string[]).reduce((sum, entry) => sum + valueBytes({ [type.slice(0, 1)]: entry }), 0);
    default:
      return 1;
  }
}
