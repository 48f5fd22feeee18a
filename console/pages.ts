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
  readonly requests: number;
}

/** The bounds of a reading. */
export interface Reading {
  /** The largest number of requests. @default 1000 */
  readonly requestsMax?: number | undefined;
  /** Ends the reading before its next request. */
  readonly signal?: AbortSignal;
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
): Promise<Listing<T>> {
  const { items, more, requests } = await firstOf(most + 1, async (page) => {
    const { items: all, ...rest } = await pageAfter({ ...page, max: PAGE_ITEMS });
    return { ...rest, items: all.filter(fits) };
  });
  return { items: items.slice(0, most), more: more || items.length > most, requests };
}

/** Returns the first `most` items. @throws the reason of `signal` when it aborts */
export async function firstOf<T>(
  most: number,
  pageAfter: (page: PageRequest) => Promise<ItemPage<T>>,
  { requestsMax = REQUESTS_MAX, signal }: Reading = {},
): Promise<Listing<T>> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (let requests = 1; requests <= requestsMax; requests++) {
    signal?.throwIfAborted();
    const page = await pageAfter({ max: Math.min(PAGE_ITEMS, most - items.length), ...(cursor !== undefined && { cursor }) });
    items.push(...page.items);
    ({ cursor } = page);
    if (cursor === undefined) return { items, more: false, requests };
    if (items.length >= most) return { items, more: true, requests };
  }
  return { items, more: true, requests: requestsMax };
}
