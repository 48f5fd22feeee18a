/** `holdfast/cdk`: the construct `LockService`, for a CDK app of one's own. */
export type { JwtOptions } from "./api.js";
export type { Functions } from "./functions.js";
export type { Client, LockServiceProps } from "./lock-service.js";
export { LockService } from "./lock-service.js";
export type { LockTable } from "./table.js";
