/** All files of a worker share these: built-in objects, their prototypes, the environment, and the streams that a test may print to. */

/** The value behind each name, such as `Date.now` or `process.env.HOME`. */
export type Snapshot = ReadonlyMap<string, unknown>;

/** Node makes some of these when they are first read, so all are read. Its stores warn if they have no file. */
const GLOBALS = Object.getOwnPropertyNames(globalThis).filter((name) => !/^__vitest|^(local|session)Storage$/.test(name));
/** Methods of the console that print. */
const PRINTING = ["log", "info", "warn", "error", "debug", "trace", "dir", "table"] as const;

/** Reads the own properties of every global, its prototype, and the given modules; and the environment. */
export function snapshotOf(modules: Readonly<Record<string, object>>): Snapshot {
  const found = new Map<string, unknown>();
  const add = (name: string, owner: object): void => {
    for (const key of Reflect.ownKeys(owner)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(owner, key) ?? {};
      found.set(`${name}.${String(key)}`, value ?? get ?? set);
    }
  };
  for (const name of GLOBALS) {
    const value: unknown = Reflect.get(globalThis, name);
    found.set(name, value);
    if (typeof value === "function") {
      add(name, value);
      if (typeof value.prototype === "object" && value.prototype !== null) add(`${name}.prototype`, value.prototype as object);
    }
  }
  add("Math", Math);
  add("JSON", JSON);
  add("performance", performance);
  for (const [name, module] of Object.entries(modules)) {
    add(name, module);
    if (typeof module === "function") add(`${name}.prototype`, module.prototype as object);
  }
  for (const [name, value] of Object.entries(process.env)) found.set(`process.env.${name}`, value);
  return found;
}

/** Returns the names whose value differs, was added, or is gone. */
export function changesBetween(before: Snapshot, after: Snapshot): readonly string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => before.has(name) !== after.has(name) || !Object.is(before.get(name), after.get(name)));
}

/** Records what is printed on the console, on the process's streams and as a warning of Node's, in place of printing it. */
export class PrintedLines {
  readonly #texts: string[] = [];
  #undo: (() => void)[] = [];

  /** Starts to record. */
  start(): void {
    for (const method of PRINTING)
      this.#replace(console, method, (...values: unknown[]) => this.#texts.push(`console.${method}: ${values.map(String).join(" ")}`));
    for (const name of ["stdout", "stderr"] as const)
      this.#replace(process[name], "write", (text: unknown) => {
        this.#texts.push(`${name}: ${String(text)}`);
        return true;
      });
    const onWarning = (warning: Error): void => {
      this.#texts.push(`warning: ${warning.message}`);
    };
    // In place of Node's own listener, which prints it.
    const listeners = process.listeners("warning");
    process.removeAllListeners("warning").on("warning", onWarning);
    this.#undo.push(() => {
      process.off("warning", onWarning);
      for (const listener of listeners) process.on("warning", listener);
    });
  }

  /** Puts console and streams back. */
  stop(): void {
    for (const undo of this.#undo.toReversed()) undo();
    this.#undo = [];
  }

  /** Throws, with the first lines, if something was printed since the last call. */
  failIfAny(): void {
    const texts = this.#texts.splice(0);
    if (texts.length > 0) throw new Error(`printed unasked (${texts.length} times):\n${texts.slice(0, 3).join("\n")}`);
  }

  #replace(owner: object, name: string, value: (...values: unknown[]) => unknown): void {
    const original = Object.getOwnPropertyDescriptor(owner, name);
    Object.defineProperty(owner, name, { value, configurable: true, writable: true, enumerable: original?.enumerable ?? false });
    this.#undo.push(() => {
      if (original) Object.defineProperty(owner, name, original);
      else Reflect.deleteProperty(owner, name);
    });
  }
}
