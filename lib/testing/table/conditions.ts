/**
 * ConditionExpression, FilterExpression and KeyConditionExpression, parsed once into a function of the item. Errors
 * that DynamoDB reports before it reads an item are reported here too, even in parts that wouldn't be evaluated.
 */
import { validationError } from "./errors.js";
import type { Path, Placeholders } from "./paths.js";
import { type Operand, Reader } from "./reader.js";
import { type Value, type ValueMap, type ValueType, bytesOf, isEqual, isList, isMap, isSet, order, typeOf } from "./values.js";

type Test = (item: ValueMap | undefined, given: Placeholders) => boolean;

/** A parsed condition. */
export interface Condition {
  readonly test: Test;
  /** The placeholders of names and of values that it uses. */
  readonly used: ReadonlySet<string>;
  readonly paths: readonly Path[];
  /** Checks the condition against these values. @throws ValidationException */
  readonly check: (given: Placeholders) => void;
}

const PATH_TESTS: ReadonlySet<string> = new Set(["attribute_exists", "attribute_not_exists", "contains"]);
const ORDERED: ReadonlySet<ValueType> = new Set(["S", "N"]);
const MAX_IN = 100;

/** Parses a condition. @throws ValidationException */
export function parseCondition(expression: string, text: string): Condition {
  return new Parser(expression, text).condition();
}

class Parser extends Reader {
  readonly #checks: ((given: Placeholders) => void)[] = [];
  /** The most recent test in parentheses. */
  #wrapped: Test | undefined;

  condition(): Condition {
    const test = this.#or();
    this.end();
    return { test, used: this.used, paths: this.paths, check: (given) => this.#checks.forEach((check) => check(given)) };
  }

  #or(): Test {
    const left = this.#and();
    if (!this.takes("OR")) return left;
    const right = this.#or();
    return (item, given) => left(item, given) || right(item, given);
  }

  #and(): Test {
    const left = this.#not();
    if (!this.takes("AND")) return left;
    const right = this.#and();
    return (item, given) => left(item, given) && right(item, given);
  }

  #not(): Test {
    if (!this.takes("NOT")) return this.#term();
    const test = this.#not();
    return (item, given) => !test(item, given);
  }

  #term(): Test {
    if (this.takes("(")) {
      const test = this.#or();
      this.expect(")");
      if (this.#wrapped === test) throw this.invalid("The expression has redundant parentheses;");
      return (this.#wrapped = test);
    }
    return PATH_TESTS.has(this.peek.text) && this.peekAfter.text === "(" ? this.#pathTest(this.peek.text) : this.#comparison();
  }

  #pathTest(name: string): Test {
    return this.argumentsBy(() => {
      const path = this.pathOperand();
      if (name === "contains") {
        this.expect(",");
        const part = this.operand();
        return (item, given) => contains(path.valueOf(item, given), part.valueOf(item, given));
      }
      const wanted = name === "attribute_exists";
      return (item, given) => (path.valueOf(item, given) !== undefined) === wanted;
    });
  }

  protected override call(name: string): Operand {
    if (name !== "size") throw new Error(`this table has no ${name} in its conditions`);
    const { text, valueOf } = this.argumentsBy(() => this.pathOperand());
    return { text: `size(${text})`, valueOf: (item, given) => sizeOf(valueOf(item, given)) };
  }

  #comparison(): Test {
    const left = this.operand();
    if (this.takes("BETWEEN")) return this.#between(left);
    if (this.takes("IN")) return this.#in(left);
    const comparator = this.peek.text;
    const compare = COMPARE.get(comparator);
    if (!compare) throw this.syntaxError();
    this.next();
    const right = this.operand();
    if (left.text === right.text)
      throw this.invalid(
        `The first operand must be distinct from the remaining operands for this operator or function; operator: ${comparator}, first operand: ${left.text}`,
      );
    if (comparator !== "=" && comparator !== "<>") this.#ordered(comparator, left, right);
    return (item, given) => compare(left.valueOf(item, given), right.valueOf(item, given));
  }

  #between(value: Operand): Test {
    const low = this.operand();
    this.expect("AND");
    const high = this.operand();
    this.#ordered("BETWEEN", value, low, high);
    this.#checks.push((given) => {
      if (low.placeholder === undefined || high.placeholder === undefined) return;
      const between = order(given.value(low.placeholder), given.value(high.placeholder));
      if (between === undefined)
        throw this.invalid("The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue");
      if (between > 0) throw this.invalid("The BETWEEN operator requires upper bound to be greater than or equal to lower bound;");
    });
    return (item, given) => {
      const actual = value.valueOf(item, given);
      return AT_LEAST(actual, low.valueOf(item, given)) && AT_MOST(actual, high.valueOf(item, given));
    };
  }

  #in(value: Operand): Test {
    this.expect("(");
    const operands = [this.operand()];
    while (this.takes(",")) operands.push(this.operand());
    this.expect(")");
    if (operands.length > MAX_IN) throw this.invalid(`Too many operands for operator IN; number of operands: ${operands.length}`);
    return (item, given) => {
      const actual = value.valueOf(item, given);
      return actual !== undefined && operands.some((operand) => isEqual(actual, operand.valueOf(item, given)));
    };
  }

  /** Only strings and numbers are ordered: other values are refused. */
  #ordered(operator: string, ...operands: readonly Operand[]): void {
    for (const { placeholder } of operands)
      if (placeholder !== undefined)
        this.#checks.push((given) => {
          const type = typeOf(given.value(placeholder));
          if (!ORDERED.has(type))
            throw this.invalid(`Incorrect operand type for operator or function; operator or function: ${operator}, operand type: ${type}`);
        });
  }
}

/** Returns the size of a value. A number or a boolean has none; a comparison with it is false. */
function sizeOf(value: Value | undefined): number | undefined {
  if (typeof value === "string") return bytesOf(value);
  if (isList(value)) return value.length;
  if (isSet(value)) return value.size;
  return isMap(value) ? Object.keys(value).length : undefined;
}

function contains(value: Value | undefined, part: Value | undefined): boolean {
  if (typeof value === "string") return typeof part === "string" && value.includes(part);
  if (isSet(value)) return typeof part === "string" && value.has(part);
  return isList(value) && part !== undefined && value.some((one) => isEqual(one, part));
}

type Comparison = (left: Value | undefined, right: Value | undefined) => boolean;

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
const COMPARE: ReadonlyMap<string, Comparison> = new Map([
  ["=", (left, right) => left !== undefined && isEqual(left, right)],
  ["<>", (left, right) => !isEqual(left, right)],
  ["<", byOrder((between) => between < 0)],
  ["<=", AT_MOST],
  [">", byOrder((between) => between > 0)],
  [">=", AT_LEAST],
]);

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
