/**
 * `holdfast doctor` of services: says of each URL whether a service answers there, whether its table lists the URL, and whether it is the table
 * of the first one that answers. It changes nothing, so it compares the lists of doors, and no lease.
 */
import { plain, plainJson } from "../../console/text/plain-text.js";
import { httpApi } from "../../lib/client/wire/http.js";
import { checkIdentity, hasDoor, stateAt } from "../../lib/client/wire/compare-ways.js";
import { randomNumber } from "../../lib/core/random.js";
import { systemClock } from "../../lib/core/time.js";
import { type ConnectionOptions, accessTo } from "../connection.js";
import type { ProcessContext } from "../context.js";
import { EXITS } from "../exit-codes.js";

/** The time limits of a question, in ms. */
const ASKING = { attemptMs: 3000, budgetMs: 6000 };

type State = Awaited<ReturnType<typeof stateAt>>;
type Asked =
  | { readonly url: string; readonly state: State; readonly why?: undefined }
  | { readonly url: string; readonly state?: undefined; readonly why: string };

/** The service at a URL, as far as it tells. */
interface Found {
  readonly url: string;
  /** Its version; absent if it doesn't answer, with `why`. */
  readonly version?: string;
  readonly why?: string;
  /** True if its table lists the URL. */
  readonly isListed?: boolean;
  /** Compared with the table of the first one that answers; absent at that one. */
  readonly table?: "same" | "other" | "unknown";
}

/** Prints what each service is. Returns the status: that of `config` if two don't serve one table, of `unavailable` if one doesn't answer. */
export async function doctorOfServices(services: string, at: ConnectionOptions, context: ProcessContext): Promise<number> {
  const { url: urls, ...access } = await accessTo(services, at, context.env);
  const asked = await Promise.all(urls.map((url) => ask(url, access)));
  const first = asked.find(({ state }) => state !== undefined);
  const doors = asked.map((one) => foundOf(one, first));
  const text = doors.map((one) => `${plain(`${one.url}: ${wordsOf(one, first?.url)}`)}\n`).join("");
  await context.print(context.asJson ? `${plainJson({ doors })}\n` : text);
  if (doors.some(({ table, version, why }) => table === "other" || (version !== undefined && why !== undefined)))
    return EXITS.config.status;
  return (first && doors.every(({ version }) => version !== undefined) ? EXITS.ok : EXITS.unavailable).status;
}

async function ask(url: string, access: Omit<Parameters<typeof httpApi>[0], "url">): Promise<Asked> {
  try {
    return { url, state: await stateAt(httpApi({ ...access, url }), ASKING, { clock: systemClock, random: randomNumber }) };
  } catch (error) {
    return { url, why: (error as Error).message };
  }
}

function foundOf({ url, state, why }: Asked, first: Asked | undefined): Found {
  if (!state) return { url, why };
  const found = { url, version: state.version, isListed: hasDoor(state, url) };
  if (!first?.state || url === first.url) return found;
  try {
    checkIdentity(state.caller, first.state.caller, url, `at ${first.url}`);
  } catch (error) {
    return { ...found, table: "other", why: (error as Error).message };
  }
  if (hasDoor(state, first.url) || hasDoor(first.state, url)) return { ...found, table: "same" };
  // Each writes its URL into its own table, so these are two.
  return { ...found, table: found.isListed && hasDoor(first.state, first.url) ? "other" : "unknown" };
}

function wordsOf({ version, why, isListed, table }: Found, first = ""): string {
  if (version === undefined) return `doesn't answer: ${why}`;
  const tables = {
    same: `the same table as ${first}`,
    other: why ?? `another table than ${first}`,
    unknown: `nothing shows if it is the table of ${first}`,
  };
  const listed = isListed === true ? "its table lists it" : "its table doesn't list it: HOLDFAST_OWN_URL isn't this URL";
  return [`answers (${version})`, listed, ...(table ? [tables[table]] : [])].join("; ");
}
