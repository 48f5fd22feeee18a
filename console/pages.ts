/** Reads paged lists to the end or up to a limit. */

/** A page; `cursor` requests the next one. It can be short, or even empty, without being the last. */
export interface ItemPage<T> {
  readonly items: readonly T[];
  readonly cursor?: string;
}

/** The part of a list that was read. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** True if the list has more items, or may have: not all of it was read. */
  readonly more: boolean;
  /** Requests the items after these, if there may be more. */
  readonly cursor?: string;
  readonly requests: number;
}

/** The bounds of a reading. */
export interface Reading {
  /** The largest number of requests. @default 1000 */
  readonly requestsMax?: number | undefined;
  /** Ends the reading before its next request, by an error. */
  readonly signal?: AbortSignal;
  /** Ends the reading before its next request, with what it has. */
  readonly stop?: AbortSignal;
  /** Begins after the items before this cursor. @default with the first */
  readonly cursor?: string | undefined;
  /** Called before each request but the first, with the numbers of items and requests until then. */
  readonly tell?: (items: number, requests: number) => void;
}

/** The part of a request that a page adds. */
export interface PageRequest {
  readonly max: number;
  readonly cursor?: string;
}

/** The largest page of a request. */
export const PAGE_ITEMS = 100;
/** The largest number of requests by default: in a namespace full of idle keys, pages are empty. */
const REQUESTS_MAX = 1000;

/** Returns the first `most` items that fit. It reads on to one more of them, so `more` is not about items that don't fit. */
export async function firstThatFit<T>(
  most: number,
  pageAfter: (page: PageRequest) => Promise<ItemPage<T>>,
  fits: (item: T) => boolean,
  reading: Reading = {},
): Promise<Listing<T>> {
  const page = async (query: PageRequest): Promise<ItemPage<T>> => {
    const { items: all, ...rest } = await pageAfter({ ...query, max: PAGE_ITEMS });
    return { ...rest, items: all.filter(fits) };
  };
  const { items, more, cursor, requests } = await firstOf(most + 1, page, reading);
  // Where some are left out, the cursor is not that of the first of them.
  if (items.length > most) return { items: items.slice(0, most), more: true, requests };
  return { items, more, requests, ...(cursor !== undefined && { cursor }) };
}

/** Returns the first `most` items. @throws the reason of `signal` when it aborts */
export async function firstOf<T>(
  most: number,
  pageAfter: (page: PageRequest) => Promise<ItemPage<T>>,
  { requestsMax = REQUESTS_MAX, signal, stop, cursor, tell }: Reading = {},
): Promise<Listing<T>> {
  const items: T[] = [];
  let requests = 0;
  do {
    signal?.throwIfAborted();
    if (requests > 0) tell?.(items.length, requests);
    const page = await pageAfter({ max: Math.min(PAGE_ITEMS, most - items.length), ...(cursor !== undefined && { cursor }) });
    requests++;
    items.push(...page.items);
    ({ cursor } = page);
  } while (cursor !== undefined && items.length < most && requests < requestsMax && stop?.aborted !== true);
  return { items, more: cursor !== undefined, requests, ...(cursor !== undefined && { cursor }) };
}
