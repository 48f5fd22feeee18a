// Serves one route in each framework that is installed, and asks it twice under one key.
import "reflect-metadata";
import { createRequire } from "node:module";
import { checkFrameworks } from "./frameworks-check.mjs";

const isCommonJs = process.argv.includes("--commonjs");
const require = createRequire(import.meta.url);
const load = isCommonJs ? async (name) => require(name) : (name) => import(name);

console.log(await checkFrameworks(load));
