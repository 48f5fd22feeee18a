/** The target of the conformance tests: a URL, and a `fetch` for each principal. Signing is up to the target; nothing here knows AWS. */

/** A service to test for conformance. */
export interface Target {
  /** The API's base URL, without a slash at the end; a deployment's `HOLDFAST_URL`. */
  readonly url: string;
  /** Sends as the principal of most leases in the tests. */
  readonly fetch: typeof fetch;
  /** Sends as a second principal of the same namespace. Without it, the tests that need one are skipped. */
  readonly asAnother?: typeof fetch;
  /** Sends as a principal of another namespace. Without it, the tests that need one are skipped. */
  readonly asStranger?: typeof fetch;
  /** False for a target that refuses the operators' routes, as function URLs do. The tests that need them are skipped. @default true */
  readonly servesOperators?: boolean;
  /** Limits of the environment. */
  readonly limits?: {
    /** The largest number of concurrent requests in a test. @default 20 */
    readonly atOnce?: number;
  };
  /** The service's time, in epoch ms, if the tests advance it. @default this machine's, corrected by the service's first answer */
  nowMs?(): number;
  /** Advances the service's clock. @default the tests wait in real time */
  pass?(ms: number): Promise<void>;
  /** Settles as `reply` does, to a request that the service holds. The service's time passes until then. @default the tests wait in real time */
  passing?<T>(reply: Promise<T>): Promise<T>;
  /** Stops the processes that were started for the tests. */
  close?(): Promise<void>;
}

/** The principal that sends a request. @default the target's first principal */
export type Principal = "another" | "stranger";

/** The number of requests in a race, unless the target sets another. */
export const AT_ONCE = 20;

/** The `fetch` of a principal. @throws Error if the target has none */
export function fetchOf({ fetch: first, asAnother, asStranger }: Target, as: Principal | undefined): typeof fetch {
  const found = as === undefined ? first : as === "another" ? asAnother : asStranger;
  if (!found) throw new Error(`The target has no ${as} principal`);
  return found;
}

/** `fetch` with these headers in every request. */
export function withHeaders(headers: Readonly<Record<string, string>>, send: typeof fetch = fetch): typeof fetch {
  return (input, init) => send(input, { ...init, headers: { ...headers, ...Object.fromEntries(new Headers(init?.headers)) } });
}
