/** The grouping of callers into tenants, as the construct's option and the function's setting name it. */

/**
 * The grouping of callers into tenants, each with its own namespace: all callers of an account (with JSON Web Tokens: of an issuer), of a
 * role or user (a subject), or with the same value in a token claim.
 */
export type Tenancy = "account" | "role" | { readonly claim: string };

const OF_ONE_TOKEN = "differs from token to token";
/** The registered claims of a token (RFC 7519, section 4.1). None of them names a tenant. */
const NO_TENANTS: Readonly<Record<string, string>> = {
  iss: 'names the issuer of a token: that is "account"',
  sub: 'names one user: that is "role"',
  aud: "names the service that a token is for",
  exp: OF_ONE_TOKEN,
  nbf: OF_ONE_TOKEN,
  iat: OF_ONE_TOKEN,
  jti: OF_ONE_TOKEN,
};

/** Returns the tenancy that `text` names. @throws Error naming the setting `name` if it names none. */
export function tenancyFrom(name: string, text: string): Tenancy {
  if (text === "account" || text === "role") return text;
  const claim = /^claim:(.+)$/s.exec(text)?.[1];
  const given = `${name}: ${JSON.stringify(text)}`;
  if (claim === undefined) throw new Error(`${given} is not account, role or claim:NAME`);
  if (Object.hasOwn(NO_TENANTS, claim)) throw new Error(`${given} ${NO_TENANTS[claim]}; a claim must name a tenant, such as claim:team`);
  return { claim };
}
