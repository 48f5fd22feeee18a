/** The content of a request's body, such that the same request sent again has the same content. */

/**
 * Returns a body as parsed JSON, so that spaces and the order of members make no difference; else its text, or base64 if its bytes are no
 * text. Also returns the text if JavaScript can't represent a number in it exactly: the ids 9007199254740993 and 9007199254740992 would
 * become equal.
 */
export function contentOf(body: string | Uint8Array): unknown {
  let text: string;
  try {
    text = typeof body === "string" ? body : UTF8.decode(body);
  } catch {
    return Buffer.from(body as Uint8Array).toString("base64");
  }
  try {
    const json = JSON.parse(text) as unknown;
    return numbersIn(text).every(isExact) ? json : text;
  } catch {
    return text;
  }
}

/** Rejects bytes that are not UTF-8: a lenient decoder would make them all the same. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Returns the numbers of a JSON text, as written. */
function numbersIn(text: string): readonly string[] {
  const withoutStrings = text.replaceAll(/\\./g, "").replaceAll(/"[^"]*"/g, "");
  return withoutStrings.match(/-?\d[\d.eE+-]*/g) ?? [];
}

/**
 * The longest number that is checked, in characters. A number that JavaScript can represent is shorter, and the limit bounds the work on an
 * attacker's digits.
 */
const EXACT_CHARS = 40;

/** True if JavaScript represents the written number exactly. */
function isExact(written: string): boolean {
  return written.length <= EXACT_CHARS && decimalOf(written) === decimalOf(String(Number(written)));
}

/** Returns the same text for all ways to write a decimal number: its significant digits and its exponent. */
function decimalOf(written: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = 0] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(written) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  return significant && `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
