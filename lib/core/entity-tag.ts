/** Entity tags (RFC 9110 §8.8.3), as far as a conditional read needs them. */

/** True if `If-None-Match` matches `tag`: alone, in a list, as `*`, or as a weak tag made by a proxy. */
export function namesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  const named = (ifNoneMatch ?? "").split(",").map((one) => one.trim().replace(/^W\//, ""));
  return named.includes(tag) || named.includes("*");
}
