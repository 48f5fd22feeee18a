import * as holdfast from "holdfast";
import * as middy from "holdfast/middy";
import * as testing from "holdfast/testing";
import { check } from "./check.mjs";

await check({ holdfast, testing, middy }, { holdfast, testing, middy });
console.log("one copy");
