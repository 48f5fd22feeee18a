/**
 * A function of the next version of the same format, running beside the others during a deployment. It writes one more field into every
 * hold and every queue entry. The older version must accept the field and preserve it.
 */
import { type TableWorld, TableClient } from "./dynamo/table-client.js";
import { type Value, type ValueMap, isList, isMap } from "../../lib/testing/table/values.js";
import type { Door } from "../../lib/testing/regions.js";
import type { Process } from "./world.js";

/** The field that the older version doesn't know. */
const FIELD = "zz";

/** Returns a client that adds the field to everything it writes. */
export function newerClient(shared: TableWorld, process: Process, door?: Door): TableClient {
  const client = new TableClient(shared, process, door);
  const send = client.send.bind(client);
  client.send = ({ operation, input }) => {
    const values = input["ExpressionAttributeValues"] as ValueMap | undefined;
    return send({ operation, input: values ? { ...input, ExpressionAttributeValues: extended(values) } : input });
  };
  return client;
}

/** Returns `map` with the field in every hold, offer and queue entry inside it. */
function extended(map: ValueMap): ValueMap {
  const members = Object.fromEntries(Object.entries(map).map(([name, value]) => [name, extendedValue(value)]));
  return "ph" in map && "p" in map && "o" in map ? { ...members, [FIELD]: 1 } : members;
}

function extendedValue(value: Value): Value {
  if (isList(value)) return value.map(extendedValue);
  return isMap(value) ? extended(value) : value;
}

/** Returns the lease whose hold or offer lost the field in a write that kept the hold or offer. */
export function droppedFrom(before: ValueMap, after: ValueMap): string | undefined {
  const { h: had } = before;
  const { h: has } = after;
  if (!isMap(had) || !isMap(has)) return undefined;
  return Object.keys(has).find((leaseId) => {
    const [old, now] = [had[leaseId], has[leaseId]];
    // A claim turns an offer into a new hold, which needn't have the field.
    return isMap(old) && isMap(now) && FIELD in old && !(FIELD in now) && old["t"] === now["t"];
  });
}
