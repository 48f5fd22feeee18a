/** Text from other users, such as an owner, as plain text for a terminal or a page. Pure. */

const CONTROL = /[\u0000-\u001F\u007F-\u009F\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu;

/** Returns `text` without characters that move the cursor, set colours or change the direction of writing. */
export function plain(text: string): string {
  return text.replaceAll(CONTROL, "\u{FFFD}");
}

/** Returns `text` of several lines as {@link plain} text: line ends and tabs stay. */
export function plainLines(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(CONTROL, (character) => (/[\n\t]/.test(character) ? character : plain(character)));
}

/** Returns `value` as JSON whose text is plain: such characters are escaped, and have the same meaning to a program that parses it. */
export function plainJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(CONTROL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
