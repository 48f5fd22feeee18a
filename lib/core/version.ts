/** The version of this package, as `GET /v1/health` reports it; a test holds it to package.json. */
export const VERSION = "0.1.0";
