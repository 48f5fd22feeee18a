/** A function under a lock. Its client has the URLs of both services: if one Region fails, it goes on in the other. */
import { createLockClient, key } from "holdfast";
import { sigv4 } from "holdfast/sigv4";

const locks = createLockClient({ sign: sigv4() });

export const handler = ({ order }: { readonly order: number }): Promise<string> =>
  locks.withLock(key("ORDER", order), (lease) => `under token ${lease.fencingToken}`);
