/** Reads an expression: its tokens, and the paths and operands that they make. The parsers of conditions and of updates extend it. */
import { validationError } from "./errors.js";
import { type Path, type Placeholders, lookUp, pathText } from "./paths.js";
import type { Value, ValueMap } from "./values.js";

/** A value of the request, a path, or a function of these. */
export interface Operand {
  /** Tells it from others. */
  readonly text: string;
  /** The placeholder of a value of the request, which is known before the item. */
  readonly placeholder?: string;
  readonly valueOf: (item: ValueMap | undefined, given: Placeholders) => Value | undefined;
}

/** One token: a placeholder, a name, an integer or a sign. */
interface Token {
  readonly kind: "name" | "#" | ":" | "number" | "sign" | "end";
  readonly text: string;
}

const MAX_EXPRESSION_BYTES = 4096;
const MAX_OPERATORS = 300;
const TOKEN = /\s*([A-Za-z]\w*|[#:]\w+|\d+|<>|<=|>=|[=<>()[\],.+-])/y;
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
export abstract class Reader {
  readonly #tokens: readonly Token[];
  #at = 0;
  /** The placeholders of names and of values that were read. */
  readonly used = new Set<string>();
  readonly paths: Path[] = [];

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

  get peek(): Token {
    return this.#tokens[this.#at] ?? END;
  }

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

  /** Reads the path of an attribute. */
  path(): Path {
    const path: (string | number)[] = [this.#step()];
    for (;;) {
      if (this.takes(".")) path.push(this.#step());
      else if (this.takes("[")) {
        const { kind, text } = this.peek;
        if (kind !== "number") throw this.syntaxError();
        this.next();
        this.expect("]");
        path.push(Number(text));
      } else break;
    }
    this.paths.push(path);
    return path;
  }

  #step(): string {
    const { kind, text } = this.peek;
    if (kind === "#") this.used.add(text);
    else if (kind !== "name") throw this.syntaxError();
    else if (RESERVED.has(text.toUpperCase())) throw this.invalid(`Attribute name is a reserved keyword; reserved keyword: ${text}`);
    return this.next().text;
  }

  /** Reads a value of the request, a path, or a call. */
  operand(): Operand {
    const { kind, text } = this.peek;
    if (kind === ":") {
      this.next();
      this.used.add(text);
      return { text, placeholder: text, valueOf: (_item, given) => given.value(text) };
    }
    if (kind === "name" && this.peekAfter.text === "(") return this.call(text);
    return this.pathOperand();
  }

  protected pathOperand(): Operand {
    const path = this.path();
    return { text: pathText(path), valueOf: (item, given) => lookUp(item, path, given) };
  }

  /** Reads the call of a function that makes a value. */
  protected abstract call(name: string): Operand;

  /** Reads the name of a function, and what `read` reads between its parentheses. */
  protected argumentsBy<T>(read: () => T): T {
    this.next();
    this.expect("(");
    const args = read();
    this.expect(")");
    return args;
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
      const [, token = ""] = found;
      tokens.push({ kind: kindOf(token), text: token });
    }
    return tokens;
  }
}

const END: Token = { kind: "end", text: "" };

function kindOf([first = ""]: string): Token["kind"] {
  if (first === "#" || first === ":") return first;
  if (/\d/.test(first)) return "number";
  return /\w/.test(first) ? "name" : "sign";
}
