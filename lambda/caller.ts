/**
 * Who calls, from what the route's authorizer vouched for, and from nothing else: never from a header
 * or the body. The principal of an IAM caller is its account and role or user, not the session, whose
 * name changes with every refresh of credentials.
 */
import type { HttpEvent } from "./http.js";
import type { Caller } from "../lib/service/caller.js";

interface Authorizer {
  readonly iam?: { readonly accountId?: string; readonly userId?: string };
  readonly jwt?: { readonly claims?: Readonly<Record<string, unknown>> };
}

/** The authenticated caller, or undefined when no authorizer vouches for one. */
export function callerOf({ requestContext }: HttpEvent): Caller | undefined {
  const { requestId } = requestContext;
  const { iam, jwt } = (requestContext.authorizer ?? {}) as Authorizer;
  const { accountId = "", userId = "" } = iam ?? {};
  const user = roleOrUser(accountId, userId);
  if (accountId !== "" && user !== "" && (accountId + user).isWellFormed()) {
    const namespace = part(accountId);
    return { namespace, principal: `${namespace}/${part(user)}`, requestId };
  }
  const { iss, sub } = jwt?.claims ?? {};
  if (typeof iss === "string" && iss !== "" && typeof sub === "string" && sub !== "" && (iss + sub).isWellFormed()) {
    const namespace = part(iss);
    return { namespace, principal: `${namespace}/${part(sub)}`, requestId };
  }
  return undefined;
}

/** `AROA…:session` is the role `AROA…`. A federated user is `account:name`, which is no session but who it is. */
function roleOrUser(accountId: string, userId: string): string {
  return userId.startsWith(`${accountId}:`) ? userId : userId.replace(/:.*$/s, "");
}

/** One part of a namespace or principal, injectively without `/`. */
function part(text: string): string {
  return encodeURIComponent(text);
}
