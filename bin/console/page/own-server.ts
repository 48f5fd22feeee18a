/** Requests to the console's own server, on this machine. The secret of its start comes in the address, and leaves it at once. */
import type { Failure } from "../data.js";
import type { Way } from "./api.js";
import { ApiError } from "./api.js";

const SECRET = "holdfast-console";
const HEADER = "x-holdfast-console";

/** Moves the secret from the address, where a reload or a screenshot would show it, to this tab's storage. */
export function keepSecret(): void {
  const secret = /^#secret=([\w-]+)$/.exec(location.hash)?.[1];
  if (secret === undefined) return;
  sessionStorage.setItem(SECRET, secret);
  history.replaceState(undefined, "", `${location.pathname}#/locks`);
}

/** The way to the console's own server. */
export const OWN_SERVER: Way = {
  read: (path, query, signal) => send(`${path}?${query.toString()}`, { signal }),
  change: (path, body) => send(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
};

async function send(
  path: string,
  {
    headers = {},
    ...options
  }: {
    readonly method?: string;
    readonly body?: string;
    readonly signal?: AbortSignal;
    readonly headers?: Readonly<Record<string, string>>;
  },
): Promise<unknown> {
  const secret = sessionStorage.getItem(SECRET);
  let response: Response;
  let value: unknown;
  try {
    response = await fetch(`/console/api/${path}`, { ...options, headers: { ...headers, ...(secret !== null && { [HEADER]: secret }) } });
    value = await response.json();
  } catch {
    throw new ApiError({ code: "unreachable", message: "The server of this page does not answer. Was it stopped?" });
  }
  if (!response.ok) throw new ApiError(value as Failure);
  return value;
}
