// As two versions of the package in one dependency tree: these are its two builds.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import * as holdfast from "./node_modules/holdfast/dist/lib/index.js";
import * as middy from "./node_modules/holdfast/dist/lib/middy.js";
import * as testing from "./node_modules/holdfast/dist/lib/testing.js";
import { checkChain, names } from "./check.mjs";

const require = createRequire(import.meta.url);
assert.notEqual(holdfast.LockError, require("holdfast").LockError);
assert.deepEqual(names(holdfast), names(require("holdfast")));
const other = { testing: require("holdfast/testing"), middy: require("holdfast/middy") };
await checkChain({ testing, middy }, other);
await checkChain(other, { testing, middy });
console.log("two copies, one chain");
