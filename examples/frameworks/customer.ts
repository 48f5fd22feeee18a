/**
 * The customer of a request. An application takes it from its own authentication, never from a header that anybody can
 * write.
 */

/** Returns the customer that a token names: here the token itself. */
export function customerOf(authorization: string | null | undefined): string {
  return authorization?.replace(/^Bearer /, "") ?? "guest";
}
