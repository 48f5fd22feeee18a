/** The rules by which a table is fit for locks: property by property. */
import { expect, it } from "vitest";
import { type TableShape, unfitness } from "../../lib/store/dynamo/fit-table.js";

const FIT: TableShape = { keys: ["p:S", "k:S"], ttlAttribute: "x", hasIndex: false };
const STRONG: TableShape = { ...FIT, ttlAttribute: undefined, consistency: "STRONG" };

it.each<[what: string, shape: TableShape, reasons: readonly RegExp[]]>([
  ["of one Region with a TTL", FIT, []],
  ["that is strongly consistent in several Regions, without a TTL", STRONG, []],
  ["with EVENTUAL, by name, whatever else it has", { ...FIT, keys: ["id:S"], consistency: "EVENTUAL" }, [/EVENTUAL \(MREC\).*both grant/]],
  ["of one Region without a TTL", { ...FIT, ttlAttribute: undefined }, [/must have the TTL attribute x/]],
  ["with another TTL attribute", { ...FIT, ttlAttribute: "ttl" }, [/must have the TTL attribute x/]],
  ["of several Regions with a TTL", { ...STRONG, ttlAttribute: "x" }, [/must have no TTL attribute/]],
  ["with other keys", { ...FIT, keys: ["p:S"] }, [/string keys p \(partition\) and k \(sort\)/]],
  ["with a number as its key", { ...STRONG, keys: ["p:S", "k:N"] }, [/string keys/]],
  ["with the keys the wrong way round and an index", { ...FIT, keys: ["k:S", "p:S"], hasIndex: true }, [/string keys/, /no index/]],
])("a table %s", (_what, shape, reasons) => {
  const told = unfitness(shape);
  expect(told).toHaveLength(reasons.length);
  for (const [at, reason] of reasons.entries()) expect(told[at]).toMatch(reason);
});
