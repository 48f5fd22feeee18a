/** A `fetch` that signs its requests, as the SDK's transport does. */
import type { Sign } from "../../lib/client/wire/http-options.js";

/** Returns `carry` with every request signed. The body must be text, or absent. */
export function signed(sign: Sign, carry: typeof fetch = fetch): typeof fetch {
  return async (input, init = {}) => {
    const { method = "GET", body } = init;
    const url = input as string;
    const headers = Object.fromEntries(new Headers(init.headers));
    const added = await sign({ method, url, headers, ...(typeof body === "string" && { body }) });
    return carry(url, { ...init, headers: { ...headers, ...added } });
  };
}
