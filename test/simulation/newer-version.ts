/**
 * A function of the next version of the same format, as it is beside the others during a deployment: it writes a field more
 * into every hold and every place in a queue. The older version must get along with it, and carry it on.
 */
import type { TableWorld } from "./dynamo/table-client.js";
import { TableClient } from "./dynamo/table-client.js";
import type { Value, ValueMap } from "./dynamo/values.js";
import { isList, isMap } from "./dynamo/values.js";
import type { Process } from "./world.js";

/** The field that the older version does not know. */
const FIELD = "zz";

/** A client that adds the field to all that it writes. */
export function newerClient(shared: TableWorld, process: Process): TableClient {
  const client = new TableClient(shared, process);
  const send = client.send.bind(client);
  client.send = ({ operation, input }) => {
    const values = input["ExpressionAttributeValues"] as ValueMap | undefined;
    return send({ operation, input: values ? { ...input, ExpressionAttributeValues: extended(values) } : input });
  };
  return client;
}

/** `map` with the field in every hold, offer and place in a queue inside it. */
function extended(map: ValueMap): ValueMap {
  const members = Object.fromEntries(Object.entries(map).map(([name, value]) => [name, extendedValue(value)]));
  return "ph" in map && "p" in map && "o" in map ? { ...members, [FIELD]: 1 } : members;
}

function extendedValue(value: Value): Value {
  if (isList(value)) return value.map(extendedValue);
  return isMap(value) ? extended(value) : value;
}

/** The lease whose hold, or offer, had the field and lost it by a write that left it there. */
export function droppedFrom(before: ValueMap, after: ValueMap): string | undefined {
  const { h: had } = before;
  const { h: has } = after;
  if (!isMap(had) || !isMap(has)) return undefined;
  return Object.keys(has).find((leaseId) => {
    const [old, now] = [had[leaseId], has[leaseId]];
    // A claim makes a hold of an offer, in its own words.
    return isMap(old) && isMap(now) && FIELD in old && !(FIELD in now) && old["t"] === now["t"];
  });
}
