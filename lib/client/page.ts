/** A page of a list: of held keys, of limits or of runs. */
import type { CallOptions } from "../core/api/locks.js";
import type { Refusal } from "../core/errors.js";
import type { Checks } from "./options.js";
import { checkOptions } from "./options.js";
import type { Session } from "./session.js";

/** Asks for a page of what begins with the client's prefix and `options.prefix`. @throws LockError for a refusal */
export async function pageOf<Options extends { readonly prefix?: string | undefined }, Page extends { readonly ok: true }>(
  session: Session,
  what: string,
  options: Options,
  checks: Checks,
  ask: (query: Options & { readonly prefix: string }, call: CallOptions) => Promise<Page | Refusal>,
): Promise<Omit<Page, "ok">> {
  checkOptions(what, options, checks);
  const prefix = (session.options.prefix ?? "") + (options.prefix ?? "");
  const { ok: _ok, ...page } = await session.ask(what, (call) => ask({ ...options, prefix }, call));
  return page;
}
