/**
 * The connections that Node keeps for later requests. A NAT or a load balancer forgets those that are idle without a word, and then all of
 * them at once. So after a time-out on a kept connection the next request gets a fresh one, and doesn't try the others one by one.
 */

/** The part of Node's `Agent` that is used here. */
export interface Connections {
  readonly freeSockets: Readonly<Record<string, readonly { readonly destroy: () => unknown }[] | undefined>>;
}

/** Closes the idle connections of `agent` to `host`. @default those to every host */
export function closeIdle({ freeSockets }: Connections, host = ""): void {
  for (const [name, idle = []] of Object.entries(freeSockets)) if (name.startsWith(host)) for (const socket of idle) socket.destroy();
}
