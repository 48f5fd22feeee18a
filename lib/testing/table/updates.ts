/**
 * UpdateExpression, parsed once into actions. All of them read the item before the update, and none of them creates the
 * parents of a path. Overlapping paths are refused before any item is read.
 */
import { validationError } from "./errors.js";
import { type Path, type Placeholders, lookUp, pathText, readPath } from "./paths.js";
import { Reader } from "./tokens.js";
import { type Value, type ValueMap, define, isList, isMap } from "./values.js";

/** A parsed update. */
export interface Update {
  readonly used: ReadonlySet<string>;
  /** The paths that it changes, for this request. @throws ValidationException if they overlap */
  readonly targets: (given: Placeholders) => readonly Path[];
  /** The item after the update. @throws ValidationException */
  readonly apply: (item: ValueMap, given: Placeholders) => ValueMap;
}

type Operand = (item: ValueMap, given: Placeholders) => Value;

interface Assignment {
  readonly path: Path;
  readonly operand: Operand;
}

/** Parses an update. @throws ValidationException */
export function parseUpdate(text: string): Update {
  return new Parser(text).update();
}

class Parser {
  readonly #reader: Reader;
  readonly #used = new Set<string>();
  readonly #sets: Assignment[] = [];
  readonly #removes: Path[] = [];

  constructor(text: string) {
    this.#reader = new Reader("UpdateExpression", text);
  }

  update(): Update {
    const reader = this.#reader;
    const seen = new Set<string>();
    while (reader.peek.kind !== "end") {
      const section = reader.peek.text.toUpperCase();
      if (reader.peek.kind !== "name") throw reader.syntaxError();
      if (seen.has(section)) throw reader.invalid(`The "${section}" section can only be used once in an update expression;`);
      seen.add(section);
      reader.next();
      if (section === "SET") this.#list(() => this.#sets.push(this.#assignment()));
      else if (section === "REMOVE") this.#list(() => this.#removes.push(readPath(reader, this.#used)));
      else if (section === "ADD" || section === "DELETE") throw new Error(`this table has no ${section} in its updates`);
      else throw reader.syntaxError();
    }
    const [sets, removes] = [this.#sets, this.#removes];
    return {
      used: this.#used,
      targets: (given) => targetsOf([...sets.map(({ path }) => path), ...removes], given),
      apply: (item, given) => applied(item, sets, removes, given),
    };
  }

  #list(one: () => void): void {
    do one();
    while (this.#reader.takes(","));
  }

  #assignment(): Assignment {
    const path = readPath(this.#reader, this.#used);
    this.#reader.expect("=");
    const left = this.#operand();
    for (const sign of ["+", "-"] as const) {
      if (!this.#reader.takes(sign)) continue;
      const right = this.#operand();
      return { path, operand: (item, given) => numberOf(left(item, given)) + (sign === "+" ? 1 : -1) * numberOf(right(item, given)) };
    }
    return { path, operand: left };
  }

  #operand(): Operand {
    const reader = this.#reader;
    const { kind, text } = reader.peek;
    if (kind === ":") {
      reader.next();
      this.#used.add(text);
      return (_, given) => given.value(text);
    }
    if (kind === "name" && reader.peekAfter.text === "(") {
      if (text === "if_not_exists") return this.#ifNotExists();
      if (text === "list_append") return this.#listAppend();
      throw reader.invalid(`Invalid function name; function: ${text}`);
    }
    const path = readPath(reader, this.#used);
    return (item, given) => {
      const value = lookUp(item, path, given);
      if (value === undefined) throw validationError("The provided expression refers to an attribute that does not exist in the item");
      return value;
    };
  }

  #ifNotExists(): Operand {
    const reader = this.#reader;
    reader.next();
    reader.expect("(");
    const path = readPath(reader, this.#used);
    reader.expect(",");
    const otherwise = this.#operand();
    reader.expect(")");
    return (item, given) => {
      const value = lookUp(item, path, given);
      return value === undefined ? otherwise(item, given) : value;
    };
  }

  #listAppend(): Operand {
    const reader = this.#reader;
    reader.next();
    reader.expect("(");
    const first = this.#operand();
    reader.expect(",");
    const second = this.#operand();
    reader.expect(")");
    return (item, given) => [...listOf(first(item, given)), ...listOf(second(item, given))];
  }
}

function numberOf(value: Value): number {
  if (typeof value !== "number") throw validationError("An operand in the update expression has an incorrect data type");
  return value;
}

function listOf(value: Value): readonly Value[] {
  if (!isList(value)) throw validationError("An operand in the update expression has an incorrect data type");
  return value;
}

/** A tree of the paths that an update changes. */
interface Branch {
  path?: Path;
  readonly below: Map<string | number, Branch>;
}

function targetsOf(paths: readonly Path[], given: Placeholders): readonly Path[] {
  const root: Branch = { below: new Map() };
  const targets = paths.map((path) => given.resolve(path));
  for (const path of targets) {
    let branch = root;
    for (const step of path) {
      if (branch.path) throw overlap(branch.path, path);
      const [sibling] = branch.below.keys();
      if (sibling !== undefined && typeof sibling !== typeof step)
        throw validationError(
          "Invalid UpdateExpression: Two document paths conflict with each other; must remove or rewrite one of these paths",
        );
      let next = branch.below.get(step);
      if (!next) branch.below.set(step, (next = { below: new Map() }));
      branch = next;
    }
    if (branch.path ?? branch.below.size > 0) throw overlap(branch.path ?? path, path);
    branch.path = path;
  }
  return targets;
}

function overlap(one: Path, other: Path): Error {
  return validationError(
    `Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: ${pathText(one)}, path two: ${pathText(other)}`,
  );
}

const NO_PARENT = "The document path provided in the update expression is invalid for update";

function applied(before: ValueMap, sets: readonly Assignment[], removes: readonly Path[], given: Placeholders): ValueMap {
  const values = sets.map(({ operand }) => operand(before, given));
  let item = before;
  for (const [index, { path }] of sets.entries()) item = changed(item, given.resolve(path), 0, values[index] ?? null) as ValueMap;
  // Within one list, the last index is removed first, because all indices mean the list before the update.
  const gone = removes.map((path) => given.resolve(path)).sort((a, b) => lastIndex(b) - lastIndex(a));
  for (const path of gone) item = changed(item, path, 0, undefined) as ValueMap;
  return item;
}

function lastIndex(path: Path): number {
  const last = path.at(-1);
  return typeof last === "number" ? last : -1;
}

/** Returns `parent` with `value` at the path, or with nothing there. */
function changed(parent: Value | undefined, path: Path, at: number, value: Value | undefined): Value {
  const step = path[at];
  const isLast = at === path.length - 1;
  if (typeof step === "number") {
    if (!isList(parent)) throw validationError(NO_PARENT);
    if (!isLast && step >= parent.length) throw validationError(NO_PARENT);
    if (value === undefined && isLast) return parent.toSpliced(step, 1);
    const next = isLast ? (value ?? null) : changed(parent[step], path, at + 1, value);
    // An index beyond the end of a list appends to it.
    return step < parent.length ? parent.with(step, next) : [...parent, next];
  }
  if (!isMap(parent) || step === undefined) throw validationError(NO_PARENT);
  const is = Object.hasOwn(parent, step);
  if (!isLast && !is) throw validationError(NO_PARENT);
  if (isLast && value === undefined) {
    if (!is) return parent;
    const { [step]: _gone, ...rest } = parent;
    return rest;
  }
  const next = isLast ? (value ?? null) : changed(parent[step], path, at + 1, value);
  // A map is unordered: new members come first here, so that no code relies on an order.
  const copy: Record<string, Value> = is ? { ...parent } : {};
  define(copy, step, next);
  return is ? copy : { ...copy, ...parent };
}
