/** `holdfast/cdk`: the construct `LockService`, for your own CDK app. */
export type { JwtOptions } from "./api.js";
export type { Functions } from "./functions.js";
export type { Client } from "./lock-service.js";
export { LockService } from "./lock-service.js";
export type { LockServiceProps } from "./props.js";
export type { RegionsOptions } from "./regions.js";
export type { LockTable } from "./table.js";
export type { WakeOptions } from "./waking.js";
