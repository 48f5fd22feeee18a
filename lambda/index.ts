/** `holdfast/lambda`: the API's handler, to mount in your own function. For wrappers of your own handlers see `holdfast/middy`. */
export type { Environment } from "./compose.js";
export { compose } from "./compose.js";
export type { HandlerDeps } from "./handler.js";
export { createHandler } from "./handler.js";
export type { HttpEvent, HttpResult } from "./http.js";
