/**
 * The customer of a request. An application verifies the token and takes its subject. The token itself names nobody: it is
 * a secret, and another one after the next login.
 */

/** The subjects of the tokens: in an application, the claim `sub` of a token whose signature was verified. */
const SUBJECTS: ReadonlyMap<string, string> = new Map([
  ["Bearer 7f3a", "ann"],
  ["Bearer 91c0", "bob"],
]);

/** Returns the customer whose token this is. Who has none is a guest, as all others are. */
export function customerOf(authorization: string | null | undefined): string {
  return SUBJECTS.get(authorization ?? "") ?? "guest";
}
