/**
 * Credentials that are found outside the environment, such as in a file, are used until they end or are refused. Others rewrite such a file, and
 * nothing says when. So a refusal makes the search begin again, and the request is sent once more if there are other credentials.
 */
import { type Clock, type Instant, elapsedMs, instantOf } from "../../core/time.js";
import { meaningOfFailure } from "../../core/what-came-back.js";

/** The shortest time in ms from one search to the next: a search may ask a service of AWS. */
const SEARCH_MS = 1000;

/** The names of AWS's errors for credentials that have ended or are not known, and for a signature by others. */
const REFUSED: ReadonlySet<string | undefined> = new Set([
  ...["ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException", "InvalidClientTokenId"],
  ...["InvalidSignatureException", "IncompleteSignatureException", "MissingAuthenticationTokenException"],
]);

/** True if AWS refused the credentials of a request, and so didn't carry it out. */
export function refusesCredentials({ name }: { readonly name?: string }): boolean {
  return REFUSED.has(name);
}

/** The names of the AWS SDK's errors when no provider has credentials. */
const NONE: readonly string[] = ["CredentialsProviderError", "TokenProviderError"];

/** True if a search ended without credentials, or wasn't permitted: no later one finds some until something is changed. */
export function isWithoutCredentials(error: unknown): error is Error {
  return error instanceof Error && (NONE.includes(error.name) || meaningOfFailure(error).meaning === "not-permitted");
}

/** An option of the AWS SDK's providers that its types lack in places: each search reads the files. The SDK reads a file once otherwise. */
export const READS_FILES = { ignoreCache: true } as const;

/** Holds a search for credentials that remembers what it found, such as a chain of providers. */
export class Finder<T> {
  readonly #make: () => T;
  readonly #clock: Clock;
  #made: { readonly finder: T } | undefined;
  #refusedAt: Instant | undefined;

  /** @param make returns one that remembers nothing */
  constructor(make: () => T, clock: Clock) {
    this.#make = make;
    this.#clock = clock;
  }

  /** Returns the present one. */
  get current(): T {
    return (this.#made ??= { finder: this.#make() }).finder;
  }

  /** Makes the search begin again, since what was found is refused; at most once a second. */
  refused(): void {
    const now = instantOf(this.#clock);
    if (this.#refusedAt && elapsedMs(this.#refusedAt, now) < SEARCH_MS) return;
    this.#refusedAt = now;
    this.#made = undefined;
  }
}
