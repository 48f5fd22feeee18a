/**
 * Two versions of the function. No version was released yet, so the old one is this tree, and the next one is this tree
 * with the edits that a next version of the same format might bring: a new option of an acquire, stored with the hold and
 * shown with the lease; a new attribute in each part of a record, and one beside the parts.
 *
 * From the first release on, the old version can be the released package: its `dist/infra/function` is such a bundle.
 */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleFunction } from "../../infra/bundle.js";
import { type Edit, type Edits, editedSources } from "../support/edited-sources.js";

/** The attribute that the next version writes into each part of a record. */
export const NEWER_ATTRIBUTE = "zz";
/** The attribute of the new option in a hold. */
export const NOTE_ATTRIBUTE = "nn";
/** The attribute that the next version writes beside the parts, where it writes a whole record. */
export const BESIDE_ATTRIBUTE = "nx";

const ITEM = "lib/store/dynamo/item.ts";
const LAYOUT = "lib/store/dynamo/layout.ts";
const zz = `${NEWER_ATTRIBUTE}: 1`;

/** A part's attribute, written before those that this version knows. */
const inEachPart: readonly Edit[] = [
  ["{ ...part.unknown };", `{ ...part.unknown, ${zz} };`, LAYOUT],
  ["return {\n    h: Object.fromEntries([", `return {\n${BESIDE_ATTRIBUTE}: 1,\nh: Object.fromEntries([`, ITEM],
];

/** The option `note` of an acquire, which takes the way of `meta`. */
const aNewOption: readonly Edit[] = [
  ["meta: true };", "meta: true, note: true };", "lib/core/details.ts"],
  ["meta: v.optional(meta) }", "meta: v.optional(meta), note: v.optional(text(100)) }", "lib/contract/fields.ts"],
  ['  notified: part("nt", NOTIFIED),', `  notified: part("nt", NOTIFIED),\n  note: optional(plain("${NOTE_ATTRIBUTE}")),`, LAYOUT],
];

/** The next version. */
export const NEXT: Edits = {
  name: "next",
  edits: [['VERSION = "', 'VERSION = "next-', "lib/core/version.ts"], ...inEachPart, ...aNewOption],
};

/** The next version with these edits too. */
function nextWith(name: string, ...edits: readonly Edit[]): Edits {
  return { name, edits: [...NEXT.edits, ...edits] };
}

/** Next versions that can't serve beside this one, each with the violation that must be found. */
export const MISTAKES: readonly { readonly next: Edits; readonly finds: RegExp }[] = [
  {
    // A repeat of an acquire that the other version answered is then another request.
    next: nextWith("a new parameter is in every request's hash", [
      "priority, ...Object.entries(given(later))]);",
      "priority, ...Object.entries(later)]);",
      "lib/service/locks.ts",
    ]),
    finds: /lease-reused/,
  },
  {
    next: nextWith(
      "holds are in another attribute",
      ["h: Object.fromEntries([", "hs: Object.fromEntries([", ITEM],
      ['Object.entries((item["h"] ?? {})', 'Object.entries((item["hs"] ?? {})', ITEM],
    ),
    finds: /the lease was lost/,
  },
  {
    next: nextWith("the end of a lease is in seconds", [
      'expiresAtMs: integer("e"),',
      'expiresAtMs: { name: "e", to: (ms) => Math.ceil(ms / 1000), from: (stored) => 1000 * safeInteger(stored) },',
      LAYOUT,
    ]),
    finds: /lost/,
  },
  {
    next: nextWith(
      "the queue is in another attribute",
      ["q: record.waiters.map(waiterToItem),", "q2: record.waiters.map(waiterToItem),\nq: [],", ITEM],
      ['((item["q"] ?? [])', '((item["q2"] ?? [])', ITEM],
    ),
    finds: /not served in the order of arrival/,
  },
];

/** This version with a mistake: it drops the attributes that it doesn't know. */
export const FORGETFUL: Edits = {
  name: "newer fields are dropped",
  edits: [["(unknown.length > 0 &&", "(unknown.length < 0 &&", LAYOUT]],
};

/** Bundles a version as it is deployed. Returns the directory of the bundle, which the caller removes. */
export async function bundleVersion(version?: Edits): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-version-"));
  const files = version?.edits.map(([, , file]) => file) ?? [];
  await bundleFunction(directory, undefined, version ? [editedSources(files, () => version)] : []);
  return directory;
}
