// For bundlers: both forms in one file.
import * as holdfast from "holdfast";
import * as middy from "holdfast/middy";
import * as testing from "holdfast/testing";
import { check } from "./check.mjs";

const required = { holdfast: require("holdfast"), testing: require("holdfast/testing"), middy: require("holdfast/middy") };
check({ holdfast, testing, middy }, required)
  .then(() => check(required, { holdfast, testing, middy }))
  .then(() => console.log("one copy"));
