/** The most that the package and bundles with it may weigh, in bytes: tests assert it, and docs/performance.md compares figures with it. */
export const BYTES_MAX = {
  /** The deployed function, minified. */
  service: 174_700,
  /** The client over HTTP with all that `createLockClient` can do, minified and gzipped. */
  client: 36_800,
  /** A handler with `holdfast/middy` and `holdfast/sigv4`, minified, without the AWS SDK. */
  handler: 120_000,
  /** The installed package. */
  installed: 3_370_000,
} as const;
