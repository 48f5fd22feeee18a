/** Edits that break no property, and cost requests: each form of a write (lib/store/dynamo/forms.ts) left out, and two ways in which a lease ends. */
import type { Kind } from "../../lib/core/api/locks.js";
import { formsOf } from "../../lib/store/dynamo/forms.js";
import type { Bug } from "./bugs/bug.js";

const FILE = "lib/store/dynamo/forms.ts";
const TABLE = "return [...(own[type] ?? []), ...ANY] as readonly TableForm<C>[];";

/** The forms without which some change could not be written at all. */
const NEEDED: readonly string[] = ["whole", "keep-alive"];

/** A form that is left out, and the kind of key that it writes. */
export const WITHOUT: readonly (Bug & { readonly kind: Kind })[] = [
  ...(["acquire", "renew", "release"] as const).flatMap((type) => without("locks", type)),
  ...(["start", "renew", "complete"] as const).flatMap((type) => without("runs", type)),
  {
    kind: "locks",
    name: "the list of ended leases in a large crowd",
    why: "those who leave a large crowd at one moment don't race each other to be the first tombstone",
    file: "lib/store/dynamo/ending.ts",
    edits: [["Object.keys(seen.record.holds).length > LARGE_CROWD || seen.lists.listed.length > 0", "seen.lists.listed.length > 0"]],
  },
  {
    kind: "locks",
    name: "a low watermark that stays",
    why: "a release is written once also if ids don't end in the order of their times",
    file: "lib/store/dynamo/ending.ts",
    edits: [['(last?.leaseId ?? "") < lowWatermark', '(last?.leaseId ?? "") < ""']],
  },
];

function without(kind: Kind, type: "acquire" | "renew" | "release" | "start" | "complete"): typeof WITHOUT {
  return formsOf(kind, { type } as never)
    .filter(({ name }) => !NEEDED.includes(name))
    .map(({ name }) => ({
      kind,
      name: kind === "runs" ? `${name} of a run` : name,
      why: `a change that fits this form is written as a whole record`,
      file: FILE,
      edits: [[TABLE, TABLE.replace(" as", `.filter(({ name }) => kind !== "${kind}" || name !== "${name}") as`)]],
    }));
}
