/** The parts that a key was made from, for people. Beside the page's own code, because the SDK that makes keys would be most of a page. */
import { key as keyOf } from "../lib/index.js";

/** Returns the parts that a key was made from, if they don't show in it. */
export function partsOf(key: string): string | undefined {
  if (!key.includes("~")) return undefined;
  try {
    const parts = key.split("_").map((part) => decodeURIComponent(part.replaceAll("~", "%")));
    // A key that was not made from parts, or was cut, has none.
    return keyOf(...parts) === key ? parts.join(", ") : undefined;
  } catch {
    return undefined;
  }
}
