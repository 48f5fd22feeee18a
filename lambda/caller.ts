/**
 * Who calls, from what the route's authorizer vouched for, and from nothing else: never from a header
 * or the body. The principal of an IAM caller is its account and role or user, not the session, whose
 * name changes with every refresh of credentials. All callers share one namespace unless the deployment asks for tenants
 * (docs/decisions/004-one-namespace-for-all-callers-of-a-table.md, 012-a-tenant-is-an-account-a-role-or-a-claim.md).
 */
import type { HttpEvent } from "./http.js";
import type { Caller } from "../lib/service/caller.js";
import { SHARED_NAMESPACE } from "../lib/service/caller.js";

/** Of a name as it is written into a namespace; OpenID Connect has a subject in at most 255. */
const NAME_CHARS = 800;

interface Authorizer {
  readonly iam?: { readonly accountId?: string; readonly userId?: string };
  readonly jwt?: { readonly claims?: Readonly<Record<string, unknown>> };
}

/**
 * A tenant's callers, who alone share a namespace: all of an account (with JSON Web Tokens: of an
 * issuer), those of one role or user (one subject), or those whose token says the same in a claim.
 */
export type Tenancy = "account" | "role" | { readonly claim: string };

/** The authenticated caller, or undefined when no authorizer vouches for one, or its token lacks the claim. */
export function callerOf({ requestContext }: HttpEvent, tenancy?: Tenancy): Caller | undefined {
  const { requestId } = requestContext;
  const { iam, jwt } = (requestContext.authorizer ?? {}) as Authorizer;
  const { accountId = "", userId = "" } = iam ?? {};
  const user = roleOrUser(accountId, userId);
  if (accountId !== "" && user !== "" && (accountId + user).isWellFormed()) {
    // No account's id is a claim's value: who asks for a claim has callers with tokens.
    if (typeof tenancy === "object") return undefined;
    return callerIn(accountId, user, requestId, namespaceIn(accountId, tenancy, user));
  }
  const { iss, sub, ...claims } = jwt?.claims ?? {};
  if (!isName(iss) || !isName(sub)) return undefined;
  if (typeof tenancy !== "object") return callerIn(iss, sub, requestId, namespaceIn(iss, tenancy, sub));
  const tenant = Object.hasOwn(claims, tenancy.claim) ? claims[tenancy.claim] : undefined;
  return isName(tenant) ? callerIn(iss, sub, requestId, tenantIn(iss, tenant)) : undefined;
}

/** A realm is an account or an issuer. Principals differ by it, even where all share one namespace. */
function callerIn(realm: string, user: string, requestId: string, namespace: string): Caller {
  return { namespace, principal: `${part(realm)}/${part(user)}`, requestId };
}

function namespaceIn(realm: string, tenancy: "account" | "role" | undefined, user: string): string {
  if (tenancy === undefined) return SHARED_NAMESPACE;
  return tenancy === "role" ? tenantIn(realm, user) : part(realm);
}

/** The namespace of a tenant where a realm has several. Neither half can contain the `:` between them. */
function tenantIn(realm: string, tenant: string): string {
  return `${part(realm)}:${part(tenant)}`;
}

/** Also short enough that two of them fit into a partition key of 2 KB. */
function isName(claim: unknown): claim is string {
  return typeof claim === "string" && claim !== "" && claim.isWellFormed() && part(claim).length <= NAME_CHARS;
}

/** `AROA…:session` is the role `AROA…`. A federated user is `account:name`, which is no session but who it is. */
function roleOrUser(accountId: string, userId: string): string {
  return userId.startsWith(`${accountId}:`) ? userId : userId.replace(/:.*$/s, "");
}

/** One part of a namespace or principal, injectively without `/`. */
function part(text: string): string {
  return encodeURIComponent(text);
}
