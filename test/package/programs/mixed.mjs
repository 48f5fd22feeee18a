import * as holdfast from "holdfast";
import * as middy from "holdfast/middy";
import { createRequire } from "node:module";
import * as testing from "holdfast/testing";
import { check } from "./check.mjs";

const require = createRequire(import.meta.url);
const required = { holdfast: require("holdfast"), testing: require("holdfast/testing"), middy: require("holdfast/middy") };
await check({ holdfast, testing, middy }, required);
await check(required, { holdfast, testing, middy });
console.log("one copy");
