/**
 * `holdfast/lambda`: all of `holdfast/middy`, which wraps handlers of your own, and the API's handler, to mount in a function of your own. The
 * API needs AWS's SDK; a bundler leaves out what a function doesn't use.
 */
export * from "../lib/middy.js";
export type { Environment } from "./compose.js";
export { compose } from "./compose.js";
export type { HandlerDeps } from "./handler.js";
export { createHandler } from "./handler.js";
export type { HttpEvent, HttpResult } from "./http.js";
