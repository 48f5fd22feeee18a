/** `holdfast ls`: lists held keys and their holders. */
import type { Inspection } from "../../lib/index.js";
import { holdsOf, keyColumns } from "./holds.js";
import { firstOf } from "./pages.js";
import type { CommandContext } from "../context.js";
import { plainJson } from "../plain-text.js";
import { tableOf } from "../table.js";

/** The prefix and owner of the keys, and the largest number of them. */
export interface LsArgs {
  readonly prefix: string;
  readonly owner?: string;
  readonly max: number;
}

/** The namespace of a table without tenants. */
const DEFAULT_NAMESPACE = "default";

/** Lists held keys in order, and says their namespace if it is not the default one. */
export async function ls({ prefix, owner, max }: LsArgs, { locks, screen, asJson, print, say }: CommandContext): Promise<number> {
  const query = { prefix, ...(owner !== undefined && { owner }) };
  let namespace: string | undefined;
  const { items, more } = await firstOf<Inspection>(max, async (page) => {
    const listed = await locks.list({ ...query, ...page });
    ({ namespace } = listed);
    return listed;
  });
  if (asJson) {
    await print(`${plainJson({ ...(namespace !== undefined && { namespace }), items, more })}\n`);
    return 0;
  }
  if (namespace !== undefined && namespace !== DEFAULT_NAMESPACE) say(`namespace ${namespace}`);
  const holds = holdsOf(items);
  if (items.length === 0) say(`nobody holds ${prefix === "" ? "a key" : `a key that begins with ${prefix}`}`);
  else await print(`${tableOf(keyColumns(holds), holds, screen).join("\n")}\n`);
  if (more) say(`there are more than these ${items.length}: give a prefix, or a larger --max`);
  return 0;
}
