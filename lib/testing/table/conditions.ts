/**
 * ConditionExpression, FilterExpression and KeyConditionExpression, parsed once into a function of the item. Errors
 * that DynamoDB reports before it reads an item are reported here too, even in parts that wouldn't be evaluated.
 */
import { validationError } from "./errors.js";
import { type Path, type Placeholders, lookUp, pathText, readPath } from "./paths.js";
import { Reader } from "./tokens.js";
import { type Value, type ValueMap, type ValueType, bytesOf, isEqual, isList, isMap, order, typeOf } from "./values.js";

/** Tests the condition on an item. */
export type Test = (item: ValueMap | undefined, given: Placeholders) => boolean;

/** A parsed condition. */
export interface Condition {
  readonly test: Test;
  /** The placeholders of names and of values that it uses. */
  readonly used: ReadonlySet<string>;
  /** The first attribute of each of its paths, as written. */
  readonly paths: readonly Path[];
  /** Checks the condition against these values. @throws ValidationException */
  readonly check: (given: Placeholders) => void;
}

type Operand = { readonly kind: "path" | "size"; readonly path: Path } | { readonly kind: "value"; readonly placeholder: string };

const COMPARATORS: ReadonlySet<string> = new Set(["=", "<>", "<", "<=", ">", ">="]);
const FUNCTIONS: ReadonlySet<string> = new Set(["attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"]);
const ORDERED: ReadonlySet<ValueType> = new Set(["S", "N"]);
const TYPES: ReadonlySet<Value> = new Set(["S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"]);
const MAX_IN = 100;

/** Parses a condition. @throws ValidationException */
export function parseCondition(expression: string, text: string): Condition {
  return new Parser(expression, text).condition();
}

class Parser {
  readonly #reader: Reader;
  readonly #used = new Set<string>();
  readonly #paths: Path[] = [];
  readonly #checks: ((given: Placeholders) => void)[] = [];
  /** The most recent test in parentheses. */
  #wrapped: Test | undefined;

  constructor(expression: string, text: string) {
    this.#reader = new Reader(expression, text);
  }

  condition(): Condition {
    const test = this.#or();
    this.#reader.end();
    const checks = this.#checks;
    return { test, used: this.#used, paths: this.#paths, check: (given) => checks.forEach((check) => check(given)) };
  }

  #or(): Test {
    const tests = [this.#and()];
    while (this.#reader.takes("OR")) tests.push(this.#and());
    const [only] = tests;
    return tests.length === 1 && only ? only : (item, given) => tests.some((test) => test(item, given));
  }

  #and(): Test {
    const tests = [this.#not()];
    while (this.#reader.takes("AND")) tests.push(this.#not());
    const [only] = tests;
    return tests.length === 1 && only ? only : (item, given) => tests.every((test) => test(item, given));
  }

  #not(): Test {
    if (!this.#reader.takes("NOT")) return this.#term();
    const test = this.#not();
    return (item, given) => !test(item, given);
  }

  #term(): Test {
    const reader = this.#reader;
    if (reader.peek.text === "(") {
      reader.next();
      const test = this.#or();
      reader.expect(")");
      if (this.#wrapped === test) throw reader.invalid("The expression has redundant parentheses;");
      this.#wrapped = test;
      return test;
    }
    if (reader.peek.kind === "name" && FUNCTIONS.has(reader.peek.text) && reader.peekAfter.text === "(") return this.#call();
    return this.#comparison();
  }

  #call(): Test {
    const reader = this.#reader;
    const name = reader.next().text;
    reader.expect("(");
    const path = this.#path();
    if (name === "attribute_exists" || name === "attribute_not_exists") {
      reader.expect(")");
      const wanted = name === "attribute_exists";
      return (item, given) => (lookUp(item, path, given) !== undefined) === wanted;
    }
    reader.expect(",");
    const second = this.#operand();
    reader.expect(")");
    if (name === "contains") return (item, given) => contains(lookUp(item, path, given), valueOf(second, item, given));
    const { placeholder } = second.kind === "value" ? second : { placeholder: "" };
    this.#checks.push((given) => {
      if (second.kind !== "value") return;
      const value = given.value(placeholder);
      if (name === "attribute_type" && !TYPES.has(value))
        throw reader.invalid(`Invalid attribute type name found; type: ${JSON.stringify(value)}`);
      if (name === "begins_with" && typeof value !== "string") throw this.#wrongType(name, value);
    });
    if (name === "attribute_type") {
      return (item, given) => {
        const value = lookUp(item, path, given);
        return value !== undefined && typeOf(value) === valueOf(second, item, given);
      };
    }
    return (item, given) => {
      const [value, prefix] = [lookUp(item, path, given), valueOf(second, item, given)];
      return typeof value === "string" && typeof prefix === "string" && value.startsWith(prefix);
    };
  }

  #comparison(): Test {
    const reader = this.#reader;
    const left = this.#operand();
    if (reader.takes("BETWEEN")) return this.#between(left);
    if (reader.takes("IN")) return this.#in(left);
    const { text: comparator } = reader.peek;
    if (!COMPARATORS.has(comparator)) throw reader.syntaxError();
    reader.next();
    const right = this.#operand();
    this.#distinct(comparator, left, right);
    if (comparator !== "=" && comparator !== "<>") for (const operand of [left, right]) this.#ordered(comparator, operand);
    const compare = COMPARE[comparator] ?? never;
    return (item, given) => compare(valueOf(left, item, given), valueOf(right, item, given));
  }

  #between(left: Operand): Test {
    const reader = this.#reader;
    const low = this.#operand();
    reader.expect("AND");
    const high = this.#operand();
    for (const operand of [left, low, high]) this.#ordered("BETWEEN", operand);
    this.#checks.push((given) => {
      if (low.kind !== "value" || high.kind !== "value") return;
      const [from, to] = [given.value(low.placeholder), given.value(high.placeholder)];
      const between = order(from, to);
      if (between === undefined)
        throw reader.invalid(
          "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue",
        );
      if (between > 0) throw reader.invalid("The BETWEEN operator requires upper bound to be greater than or equal to lower bound;");
    });
    return (item, given) => {
      const value = valueOf(left, item, given);
      return AT_LEAST(value, valueOf(low, item, given)) && AT_MOST(value, valueOf(high, item, given));
    };
  }

  #in(left: Operand): Test {
    const reader = this.#reader;
    reader.expect("(");
    const operands = [this.#operand()];
    while (reader.takes(",")) operands.push(this.#operand());
    reader.expect(")");
    if (operands.length > MAX_IN) throw reader.invalid(`Too many operands for operator IN; number of operands: ${operands.length}`);
    return (item, given) => {
      const value = valueOf(left, item, given);
      return value !== undefined && operands.some((operand) => isEqual(value, valueOf(operand, item, given)));
    };
  }

  #operand(): Operand {
    const reader = this.#reader;
    const { kind, text } = reader.peek;
    if (kind === ":") {
      reader.next();
      this.#used.add(text);
      return { kind: "value", placeholder: text };
    }
    if (kind === "name" && text === "size" && reader.peekAfter.text === "(") {
      reader.next();
      reader.expect("(");
      const path = this.#path();
      reader.expect(")");
      return { kind: "size", path };
    }
    return { kind: "path", path: this.#path() };
  }

  #path(): Path {
    const path = readPath(this.#reader, this.#used);
    this.#paths.push(path);
    return path;
  }

  #distinct(operator: string, left: Operand, right: Operand): void {
    if (JSON.stringify(left) !== JSON.stringify(right)) return;
    const operand = left.kind === "value" ? left.placeholder : pathText(left.path);
    throw this.#reader.invalid(
      `The first operand must be distinct from the remaining operands for this operator or function; operator: ${operator}, first operand: ${operand}`,
    );
  }

  /** Only strings and numbers are ordered: other values are refused. */
  #ordered(operator: string, operand: Operand): void {
    if (operand.kind !== "value") return;
    this.#checks.push((given) => {
      const value = given.value(operand.placeholder);
      if (!ORDERED.has(typeOf(value))) throw this.#wrongType(operator, value);
    });
  }

  #wrongType(operator: string, value: Value): Error {
    return this.#reader.invalid(
      `Incorrect operand type for operator or function; operator or function: ${operator}, operand type: ${typeOf(value)}`,
    );
  }
}

function valueOf(operand: Operand, item: ValueMap | undefined, given: Placeholders): Value | undefined {
  if (operand.kind === "value") return given.value(operand.placeholder);
  const value = lookUp(item, operand.path, given);
  if (operand.kind === "path" || value === undefined) return value;
  if (typeof value === "string") return bytesOf(value);
  if (isList(value)) return value.length;
  // A number or a boolean has no size; a comparison with it is false.
  return isMap(value) ? Object.keys(value).length : undefined;
}

function contains(value: Value | undefined, part: Value | undefined): boolean {
  if (typeof value === "string") return typeof part === "string" && value.includes(part);
  return isList(value) && part !== undefined && value.some((one) => isEqual(one, part));
}

type Comparison = (left: Value | undefined, right: Value | undefined) => boolean;

const never: Comparison = () => false;

/** A comparison by order. It is false for different types and for missing values. */
function byOrder(holds: (between: number) => boolean): Comparison {
  return (left, right) => {
    if (left === undefined || right === undefined) return false;
    const between = order(left, right);
    return between !== undefined && holds(between);
  };
}

const AT_LEAST = byOrder((between) => between >= 0);
const AT_MOST = byOrder((between) => between <= 0);
const COMPARE: Readonly<Record<string, Comparison>> = {
  "=": (left, right) => left !== undefined && isEqual(left, right),
  "<>": (left, right) => !isEqual(left, right),
  "<": byOrder((between) => between < 0),
  "<=": AT_MOST,
  ">": byOrder((between) => between > 0),
  ">=": AT_LEAST,
};

/** Refuses names and values that no expression used, and undefined ones. @throws ValidationException */
export function checkPlaceholders(used: ReadonlySet<string>, { names, values }: Placeholders): void {
  for (const placeholder of used) {
    if (placeholder.startsWith("#") && !Object.hasOwn(names, placeholder))
      throw validationError(
        `Invalid expression: An expression attribute name used in the document path is not defined; attribute name: ${placeholder}`,
      );
    if (placeholder.startsWith(":") && !Object.hasOwn(values, placeholder))
      throw validationError(
        `Invalid expression: An expression attribute value used in expression is not defined; attribute value: ${placeholder}`,
      );
  }
  unused("ExpressionAttributeNames", names, used);
  unused("ExpressionAttributeValues", values, used);
}

function unused(parameter: string, given: object, used: ReadonlySet<string>): void {
  for (const name in given)
    if (!used.has(name)) throw validationError(`Value provided in ${parameter} unused in expressions: keys: {${name}}`);
}
