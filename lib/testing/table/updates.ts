/**
 * UpdateExpression, parsed once into actions. All of them read the item before the update, and none of them creates the
 * parents of a path. Overlapping paths are refused before any item is read. ADD is there for sets of texts alone, and DELETE not at all.
 */
import { validationError } from "./errors.js";
import { type Path, type Placeholders, lookUp, pathText } from "./paths.js";
import { type Operand, Reader } from "./reader.js";
import { type Value, type ValueMap, define, isList, isMap, isSet, typeOf } from "./values.js";

/** A parsed update. */
export interface Update {
  readonly used: ReadonlySet<string>;
  /** The paths that it changes, for this request. @throws ValidationException if they overlap */
  readonly targets: (given: Placeholders) => readonly Path[];
  /** The item after the update. @throws ValidationException */
  readonly apply: (item: ValueMap, given: Placeholders) => ValueMap;
}

interface Assignment {
  readonly path: Path;
  readonly valueOf: Made;
}

/** Makes a value of an item that has what it reads. @throws ValidationException */
type Made = (item: ValueMap, given: Placeholders) => Value;

/** Parses an update. @throws ValidationException */
export function parseUpdate(text: string): Update {
  return new Parser("UpdateExpression", text).update();
}

class Parser extends Reader {
  readonly #sets: Assignment[] = [];
  readonly #removes: Path[] = [];

  update(): Update {
    const seen = new Set<string>();
    while (this.peek.kind !== "end") {
      const section = this.peek.text.toUpperCase();
      if (this.peek.kind !== "name") throw this.syntaxError();
      if (seen.has(section)) throw this.invalid(`The "${section}" section can only be used once in an update expression;`);
      seen.add(section);
      this.next();
      if (section === "SET") this.#list(() => this.#sets.push(this.#assignment()));
      else if (section === "REMOVE") this.#list(() => this.#removes.push(this.path()));
      else if (section === "ADD") this.#list(() => this.#sets.push(this.#addition()));
      else if (section === "DELETE") throw new Error("this table has no DELETE in its updates");
      else throw this.syntaxError();
    }
    const [sets, removes] = [this.#sets, this.#removes];
    return {
      used: this.used,
      targets: (given) => targetsOf([...sets.map(({ path }) => path), ...removes], given),
      apply: (item, given) => applied(item, sets, removes, given),
    };
  }

  #list(one: () => void): void {
    do one();
    while (this.takes(","));
  }

  #assignment(): Assignment {
    const path = this.path();
    this.expect("=");
    const left = made(this.operand());
    for (const sign of ["+", "-"] as const) {
      if (!this.takes(sign)) continue;
      const right = made(this.operand());
      return { path, valueOf: (item, given) => numberOf(left(item, given)) + (sign === "+" ? 1 : -1) * numberOf(right(item, given)) };
    }
    return { path, valueOf: left };
  }

  /** Reads a path, and the set whose members are added to the one there. Where none is, the set itself is stored. */
  #addition(): Assignment {
    const path = this.path();
    const added = this.operand();
    if (added.placeholder === undefined) throw this.syntaxError();
    return {
      path,
      valueOf: (item, given) => {
        const members = addedBy(made(added)(item, given));
        const present = lookUp(item, path, given);
        if (present === undefined) return members;
        if (!isSet(present)) throw validationError("An operand in the update expression has an incorrect data type");
        return new Set([...present, ...members]);
      },
    };
  }

  protected override call(name: string): Operand {
    if (name !== "if_not_exists" && name !== "list_append") throw this.invalid(`Invalid function name; function: ${name}`);
    return this.argumentsBy(() => {
      const first = name === "if_not_exists" ? this.pathOperand() : this.operand();
      this.expect(",");
      const [list, second] = [made(first), made(this.operand())];
      if (name === "list_append")
        return { text: name, valueOf: (item = {}, given) => [...listOf(list(item, given)), ...listOf(second(item, given))] };
      const valueOf: Operand["valueOf"] = (item = {}, given) => {
        const value = first.valueOf(item, given);
        return value === undefined ? second(item, given) : value;
      };
      return { text: name, valueOf };
    });
  }
}

function made({ valueOf }: Operand): Made {
  return (item, given) => {
    const value = valueOf(item, given);
    if (value === undefined) throw validationError("The provided expression refers to an attribute that does not exist in the item");
    return value;
  };
}

/** @throws ValidationException for a value that can be added to nothing; Error for a number, which this table adds to none */
function addedBy(value: Value): ReadonlySet<string> {
  if (typeof value === "number") throw new Error("this table has no ADD of numbers in its updates");
  if (!isSet(value))
    throw validationError(
      `Invalid UpdateExpression: Incorrect operand type for operator or function; operator: ADD, operand type: ${typeOf(value)}`,
    );
  return value;
}

function numberOf(value: Value): number {
  if (typeof value !== "number") throw validationError("An operand in the update expression has an incorrect data type");
  return value;
}

function listOf(value: Value): readonly Value[] {
  if (!isList(value)) throw validationError("An operand in the update expression has an incorrect data type");
  return value;
}

function targetsOf(paths: readonly Path[], given: Placeholders): readonly Path[] {
  const targets = paths.map((path) => given.resolve(path));
  for (const [at, path] of targets.entries()) for (const other of targets.slice(0, at)) refuseOverlap(other, path);
  return targets;
}

/** @throws ValidationException if one is a part of the other, or has an index where the other has a name */
function refuseOverlap(one: Path, other: Path): void {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  if (at === one.length || at === other.length)
    throw validationError(
      `Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: ${pathText(one)}, path two: ${pathText(other)}`,
    );
  if (typeof one[at] !== typeof other[at])
    throw validationError(
      "Invalid UpdateExpression: Two document paths conflict with each other; must remove or rewrite one of these paths",
    );
}

const NO_PARENT = "The document path provided in the update expression is invalid for update";

function applied(before: ValueMap, sets: readonly Assignment[], removes: readonly Path[], given: Placeholders): ValueMap {
  const values = sets.map(({ valueOf }) => valueOf(before, given));
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
