/** Text from other users, such as an owner, as plain text for a terminal or a page. Pure. */

const CONTROL = /[\u0000-\u001F\u007F-\u009F\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu;

/** Returns `text` without characters that move the cursor, set colours or change the direction of writing. */
export function plain(text: string): string {
  return text.replaceAll(CONTROL, "\u{FFFD}");
}
