/** The tenant whose keys a command is about. An operator who finds nothing may have looked among those of another. */
import type { LockClient } from "../../lib/index.js";

/** The namespace of a table without tenants. */
const DEFAULT_NAMESPACE = "default";

/** The advice for who finds nothing on a table with tenants. */
export const OTHER_TENANTS =
  "Other tenants have keys of the same name: an operator names theirs by --namespace, which the log's lines have (docs/operating.md).";

/** True for the namespace of a tenant, and not that of all callers. */
export function isTenants(namespace: string | undefined): namespace is string {
  return namespace !== undefined && namespace !== DEFAULT_NAMESPACE;
}

/** Returns the namespace in which `key` was looked for, if the table has tenants; undefined too if this caller may not ask. */
export async function tenantOf(locks: LockClient, key: string): Promise<string | undefined> {
  const { namespace } = await locks.list({ prefix: key, max: 1 }).catch(() => ({ namespace: undefined }));
  return isTenants(namespace) ? namespace : undefined;
}
