/**
 * Identifies the caller from the claims of the route's authorizer, and never from a header or the body. The principal of an IAM caller is
 * its account and its role or user. It does not include the session, whose name changes with every refresh of credentials. All callers
 * share one namespace unless the deployment has tenants (docs/decisions/004-one-namespace-for-all-callers-of-a-table.md,
 * 012-a-tenant-is-an-account-a-role-or-a-claim.md).
 */
import type { HttpEvent } from "./http.js";
import type { Tenancy } from "./tenancy.js";
import { type Caller, SHARED_NAMESPACE } from "../lib/service/caller.js";

/** The longest name in its encoded form, in characters; OpenID Connect limits a subject to 255. */
const NAME_CHARS = 800;

interface Authorizer {
  readonly iam?: { readonly accountId?: string; readonly userId?: string };
  readonly jwt?: { readonly claims?: Readonly<Record<string, unknown>> };
}

/** Returns the authenticated caller; undefined if no authorizer vouches for one, or its token lacks the claim. */
export function callerOf({ requestContext }: HttpEvent, tenancy?: Tenancy): Caller | undefined {
  const { requestId } = requestContext;
  const { iam, jwt } = (requestContext.authorizer ?? {}) as Authorizer;
  const { accountId = "", userId = "" } = iam ?? {};
  const user = roleOrUser(accountId, userId);
  if (accountId !== "" && user !== "" && (accountId + user).isWellFormed()) {
    // IAM callers have no claims, so a service whose tenants are claims refuses them.
    if (typeof tenancy === "object") return undefined;
    return callerIn(accountId, user, requestId, namespaceIn(accountId, tenancy, user));
  }
  const { iss, sub, ...claims } = jwt?.claims ?? {};
  if (!isName(iss) || !isName(sub)) return undefined;
  if (typeof tenancy !== "object") return callerIn(iss, sub, requestId, namespaceIn(iss, tenancy, sub));
  const tenant = Object.hasOwn(claims, tenancy.claim) ? claims[tenancy.claim] : undefined;
  return isName(tenant) ? callerIn(iss, sub, requestId, tenantIn(iss, tenant)) : undefined;
}

/** Returns why {@link callerOf} finds no caller. */
export function whyNoCaller(event: HttpEvent, tenancy?: Tenancy): string {
  if (typeof tenancy !== "object" || callerOf(event) === undefined) return "No authorizer vouches for the caller";
  return `This service tells tenants apart by the claim ${JSON.stringify(tenancy.claim)} of a token, and the caller has none that names a tenant`;
}

/** Returns a caller of a realm, which is an account or an issuer. Principals include the realm, even if all share one namespace. */
function callerIn(realm: string, user: string, requestId: string, namespace: string): Caller {
  return { namespace, principal: `${part(realm)}/${part(user)}`, requestId };
}

function namespaceIn(realm: string, tenancy: "account" | "role" | undefined, user: string): string {
  if (tenancy === undefined) return SHARED_NAMESPACE;
  return tenancy === "role" ? tenantIn(realm, user) : part(realm);
}

/** Returns the namespace of a tenant, for realms with several. Neither half can contain the `:` between them. */
function tenantIn(realm: string, tenant: string): string {
  return `${part(realm)}:${part(tenant)}`;
}

/** True if the claim is a usable name. The limit makes two names fit into a partition key of 2 KB. */
function isName(claim: unknown): claim is string {
  return typeof claim === "string" && claim !== "" && claim.isWellFormed() && part(claim).length <= NAME_CHARS;
}

/**
 * Returns the role or user of an IAM caller. `AROA…:session` is the role `AROA…`. For a federated user, `account:name` is the whole
 * identity.
 */
function roleOrUser(accountId: string, userId: string): string {
  return userId.startsWith(`${accountId}:`) ? userId : userId.replace(/:.*$/s, "");
}

/** Encodes a part of a namespace or principal, injectively and without `/`. */
function part(text: string): string {
  return encodeURIComponent(text);
}
