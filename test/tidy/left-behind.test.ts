/** Changes that a file of the quick tier leaves behind, and lines that it prints, are found (test/support/left-behind.ts fails it). */
import http from "node:http";
import { describe, expect, it } from "vitest";
import { type Snapshot, changesBetween, PrintedLines, snapshotOf } from "../support/globals.js";

const MODULES = { "node:http": http, "http.Agent": http.Agent };

/** Sets a property while `read` runs, and puts it back. */
function whileSet<Result>(owner: object, name: string, value: unknown, read: () => Result): Result {
  const original = Object.getOwnPropertyDescriptor(owner, name);
  Object.defineProperty(owner, name, { value, configurable: true, writable: true, enumerable: true });
  try {
    return read();
  } finally {
    if (original) Object.defineProperty(owner, name, original);
    else Reflect.deleteProperty(owner, name);
  }
}

const read = (): Snapshot => snapshotOf(MODULES);

describe("what a test file leaves behind", () => {
  it.each<[string, object, string, unknown]>([
    ["fetch", globalThis, "fetch", () => undefined],
    ["Date", globalThis, "Date", Map],
    ["Date.now", Date, "now", () => 0],
    ["Math.random", Math, "random", () => 0],
    ["Array.prototype.at", Array.prototype, "at", () => 0],
    ["String.prototype.added", String.prototype, "added", () => 0],
    ["process.env.HOLDFAST_URL", process.env, "HOLDFAST_URL", "http://127.0.0.1:1"],
    ["node:http.request", http, "request", () => undefined],
    ["http.Agent.prototype.createConnection", http.Agent.prototype, "createConnection", () => undefined],
  ])("is named: %s", (changed, owner, name, value) => {
    const before = read();
    expect(changesBetween(before, whileSet(owner, name, value, read))).toContain(changed);
  });

  it("is nothing, if all was put back", () => {
    const before = read();
    whileSet(globalThis, "fetch", undefined, read);
    expect(changesBetween(before, read())).toEqual([]);
  });
});

describe("what a test prints unasked", () => {
  it.each<[string, () => unknown]>([
    [
      "console.error: a stack trace",
      () => {
        console.error("a stack trace");
      },
    ],
    ["stderr: a line", () => process.stderr.write("a line")],
    ["stdout: a line", () => process.stdout.write("a line")],
  ])("fails it: %s", (text, print) => {
    const printed = new PrintedLines();
    printed.start();
    print();
    printed.stop();
    expect(() => printed.failIfAny()).toThrow(`printed unasked (1 times):\n${text}`);
    expect(() => printed.failIfAny()).not.toThrow();
  });

  it("fails it: a warning of Node's", () => {
    const printed = new PrintedLines();
    printed.start();
    process.emit("warning", new Error("deprecated"));
    printed.stop();
    expect(() => printed.failIfAny()).toThrow("warning: deprecated");
  });

  it("is nothing, once the test is over", () => {
    const printed = new PrintedLines();
    const { log } = console;
    printed.start();
    printed.stop();
    expect(console.log).toBe(log);
    expect(() => printed.failIfAny()).not.toThrow();
  });
});
