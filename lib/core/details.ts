/**
 * The details of a lease: what its caller says about it. They are stored with the hold and shown, and no decision depends on them. A new one
 * is a member and a name here, and a bound in request-limits.ts. The compiler then asks for its schema (contract/fields.ts), its attribute
 * (store/dynamo/layout.ts) and its option (client/calls/options.ts).
 */

/** A JSON object that a caller stores with its lease. */
export type Meta = Readonly<Record<string, unknown>>;

/** The details that all callers of the namespace see. */
export interface PublicDetails {
  /** Text for people: who holds it, or waits. Proves nothing. */
  readonly owner: string;
}

/** All details of a lease, as its holder sees them. */
export interface Details extends PublicDetails {
  readonly meta?: Meta;
}

/** The names of the details that all callers see. */
export const PUBLIC_DETAILS: { readonly [Name in keyof Required<PublicDetails>]: true } = { owner: true };
export const DETAILS: { readonly [Name in keyof Required<Details>]: true } = { ...PUBLIC_DETAILS, meta: true };
