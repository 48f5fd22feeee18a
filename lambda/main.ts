/** The deployed function's entry point: the only file of `lambda` that reads the environment. */
import { compose } from "./compose.js";

/** The handler of every route, for API Gateway's HTTP API with payload format 2.0. */
export const handler = compose(process.env);
