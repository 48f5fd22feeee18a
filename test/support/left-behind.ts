/**
 * The setup file of the quick tier. Its files share a worker, so one that changes something global changes what every later file
 * sees, and which files those are differs from run to run. So each file is compared with what it found, and fails if it leaves a change
 * behind. A file that can't put everything back, such as one that loads a tracer, is named `*.isolated.test.ts` and has a worker of its own.
 *
 * A test that prints unasked fails too: a stack trace that nobody reads hides the one that matters. A test that expects a line replaces
 * the method that prints it.
 */
import * as http from "node:http";
import * as https from "node:https";
import { createRequire } from "node:module";
import { afterAll, afterEach, beforeAll } from "vitest";
import { changesBetween, PrintedLines, snapshotOf } from "./globals.js";

const load = createRequire(import.meta.url);
const printed = new PrintedLines();
const snapshot = (): ReturnType<typeof snapshotOf> =>
  snapshotOf({ "node:http": load("node:http"), "node:https": load("node:https"), "http.Agent": http.Agent, "https.Agent": https.Agent });
let before: ReturnType<typeof snapshotOf>;

// Before the file is loaded, so that what its imports and its `describe`s print counts too.
printed.start();

beforeAll(() => {
  before = snapshot();
});

afterEach(() => {
  printed.failIfAny();
});

// Registered first, so it runs last: after the hooks in which the file puts things back.
afterAll(() => {
  printed.stop();
  const changes = changesBetween(before, snapshot());
  if (changes.length > 0) throw new Error(`left changed for the files after this one: ${changes.join(", ")}`);
  printed.failIfAny();
});
