/** Entity tags (RFC 9110 §8.8.3), as far as a conditional look needs them. */

/** Whether an `If-None-Match` names `tag`: alone, in a list, by `*`, or weakened by a proxy on the way. */
export function namesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  const named = (ifNoneMatch ?? "").split(",").map((one) => one.trim().replace(/^W\//, ""));
  return named.includes(tag) || named.includes("*");
}
