/** The deployed function: the one file of `lambda` that reads the environment, and what Lambda calls. */
import { compose } from "./compose.js";

/** The handler of every route, for API Gateway's HTTP API with payload format 2.0. */
export const handler = compose(process.env);
