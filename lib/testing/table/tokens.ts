/** The tokens of an expression, and their reader. */
import { validationError } from "./errors.js";

/** One token: a placeholder, a name, an integer or a sign. */
export interface Token {
  readonly kind: "name" | "#" | ":" | "number" | "sign" | "end";
  readonly text: string;
}

/** The longest expression, in bytes. */
const MAX_EXPRESSION_BYTES = 4096;
/** The most operators and functions in one expression. */
const MAX_OPERATORS = 300;
const TOKEN = /\s*(?:([A-Za-z][A-Za-z0-9_]*)|#([A-Za-z0-9_]+)|:([A-Za-z0-9_]+)|(\d+)|(<>|<=|>=|[=<>()[\],.+-]))/y;
const OPERATOR = /<>|<=|>=|[=<>+-]|\b(?:AND|OR|NOT|IN|BETWEEN)\b|\b[a-z_]+\s*\(/g;
/** The DynamoDB reserved words that are short enough to be mistaken for one of our attributes. */
const RESERVED = new Set(
  `ADD ALL AND ANY ARE AS ASC AT ATTR BY CALL CASE CAST CHAR COPY CUBE DATA DATE DAY DEC DESC DO DROP EACH ELSE END EXEC FILE FOR FREE FROM
   FULL GET GO GOTO HASH HOST HOUR IF IN INT INTO IS ITEM JOIN KEY KEYS LAG LAST LEAD LEFT LESS LIKE LIST LOAD LOB LOCK LOG LONG LOOP LOW MAP
   MAX MIN MOD MODE NAME NEW NEXT NO NONE NOT NOW NULL OF OFF OLD ON ONLY OPEN OR OUT OVER OWN OWNER PAD PART PATH PLAN POOL RANK RAW READ REAL
   REF ROLE ROW ROWS RULE SEND SET SETS SHOW SITE SIZE SKIP SOME STAY STOP SUM SYNC TEMP TEXT THAN THEN TIES TIME TO TOP TREE TTL TYPE UNIT
   UP USE USER USING UUID VALUE VALUES VIEW VIEWS WAIT WHEN WITH WORK YEAR ZONE COUNT FIRST GRANT GROUP INDEX LIMIT OWNER QUEUE RANGE SHARE
   STATE STATUS TOKEN TOTAL USAGE`.split(/\s+/),
);

/** Reads one expression, which its errors name. */
export class Reader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(
    readonly expression: string,
    readonly text: string,
  ) {
    const bytes = Buffer.byteLength(text);
    if (bytes === 0) throw this.invalid("The expression can not be empty;");
    if (bytes > MAX_EXPRESSION_BYTES)
      throw this.invalid(`Expression size has exceeded the maximum allowed size; expression size: ${bytes}`);
    const operators = text.match(OPERATOR)?.length ?? 0;
    if (operators > MAX_OPERATORS) throw this.invalid(`The expression contains too many operators; operator count: ${operators}`);
    this.#tokens = this.#read();
  }

  /** The next token, without consuming it. */
  get peek(): Token {
    return this.#tokens[this.#at] ?? END;
  }

  /** The token after the next. */
  get peekAfter(): Token {
    return this.#tokens[this.#at + 1] ?? END;
  }

  next(): Token {
    const token = this.peek;
    this.#at++;
    return token;
  }

  /** Consumes the sign or keyword if it comes next. Keywords are case-insensitive. */
  takes(text: string): boolean {
    const { kind } = this.peek;
    if ((kind !== "sign" && kind !== "name") || this.peek.text.toUpperCase() !== text) return false;
    this.#at++;
    return true;
  }

  expect(text: string): void {
    if (!this.takes(text)) throw this.syntaxError();
  }

  /** Consumes the name of an attribute. */
  name(text: string): string {
    if (RESERVED.has(text.toUpperCase())) throw this.invalid(`Attribute name is a reserved keyword; reserved keyword: ${text}`);
    return text;
  }

  end(): void {
    if (this.peek.kind !== "end") throw this.syntaxError();
  }

  syntaxError(): Error {
    return this.invalid(`Syntax error; token: ${JSON.stringify(this.peek.text || "<EOF>")}, near: ${JSON.stringify(this.text)}`);
  }

  invalid(message: string): Error {
    return validationError(`Invalid ${this.expression}: ${message}`);
  }

  #read(): readonly Token[] {
    const tokens: Token[] = [];
    const text = this.text.trimEnd();
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < text.length) {
      const from = TOKEN.lastIndex;
      const found = TOKEN.exec(text);
      if (!found) throw this.invalid(`Syntax error; token: ${JSON.stringify(text[from])}, near: ${JSON.stringify(text)}`);
      const [, name, hash, colon, number, sign] = found;
      if (name !== undefined) tokens.push({ kind: "name", text: name });
      else if (hash !== undefined) tokens.push({ kind: "#", text: `#${hash}` });
      else if (colon !== undefined) tokens.push({ kind: ":", text: `:${colon}` });
      else if (number !== undefined) tokens.push({ kind: "number", text: number });
      else tokens.push({ kind: "sign", text: sign ?? "" });
    }
    return tokens;
  }
}

const END: Token = { kind: "end", text: "" };
