/** The page as the console's own server serves it, on this machine. A cookie that this script can't read goes with its requests. */
import { render } from "preact";
import type { ApiFailure } from "../data.js";
import { type DataSource, ApiError, readFrom, send } from "./api.js";
import { App } from "./app.js";
import { html } from "./html.js";

/** The way to the console's own server. */
const OWN_SERVER: DataSource = {
  read: (path, query, signal) => ask(`${path}?${query.toString()}`, { signal }),
  change: (path, body) => ask(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
};

async function ask(path: string, init: RequestInit): Promise<unknown> {
  const { response, value } = await send(`/console/api/${path}`, init, "The server of this page does not answer. Was it stopped?");
  if (!response.ok)
    throw new ApiError({ code: `${response.status}`, message: `The answer was ${response.status}.`, ...(value as Partial<ApiFailure>) });
  return value;
}

/**
 * Exchanges the secret in the address for the cookie. The secret leaves the address first, and is good for one exchange: a history, a
 * reload or a screenshot has nothing that opens the console.
 */
async function openSession(): Promise<void> {
  const secret = /^#secret=([\w-]+)$/.exec(location.hash)?.[1];
  if (secret === undefined) return;
  history.replaceState(undefined, "", `${location.pathname}#/locks`);
  // If it was exchanged before, this browser may have the cookie. If not, the first read is refused, and says why.
  await OWN_SERVER.change("session", { secret }).catch(() => undefined);
}

readFrom(OWN_SERVER);
await openSession();
render(html`<${App} />`, document.body);
