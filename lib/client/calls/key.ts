/** `key()` as the SDK has it: its refusals are {@link InvalidRequestError}, as of all other input. */
import { type KeyPart, key as keyOf } from "../../core/key.js";
import { InvalidRequestError } from "../wire/errors.js";

/**
 * Builds the key of these parts: `key("ORDER", 1231)` is `ORDER_1231`. Other characters, and `_` `~` inside a part,
 * become `~XX` per UTF-8 byte, so different parts never share a key. A part is taken in Unicode's normal form C: a name is the same key from a
 * macOS file system (`e` and an accent) and from a keyboard (`é`). Upper and lower case differ. A key that would take 200 characters or more is
 * cut: its beginning stays, followed by `~` and the SHA-256 of the whole.
 * @throws InvalidRequestError naming the part that is missing, empty, not a number or not text.
 */
export function key(...parts: readonly KeyPart[]): string {
  try {
    return keyOf(...parts);
  } catch (cause) {
    throw new InvalidRequestError((cause as Error).message, "key");
  }
}
