/** Reads paged lists to the end or up to a limit. */

/** A page; `cursor` requests the next one. It can be short, or even empty, without being the last. */
interface Page<T> {
  readonly items: readonly T[];
  readonly cursor?: string;
}

/** The part of a list that was read. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** True if the list has more items. */
  readonly more: boolean;
}

/** The largest page of a request. */
const PAGE_ITEMS = 100;
/** The largest number of pages that are read: in a namespace full of idle keys, pages are empty. */
const PAGES = 1000;

/** Returns the first `most` items. */
export async function firstOf<T>(
  most: number,
  pageAfter: (page: { max: number; cursor?: string }) => Promise<Page<T>>,
): Promise<Listing<T>> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < PAGES && items.length < most; pages++) {
    const page = await pageAfter({ max: Math.min(PAGE_ITEMS, most - items.length), ...(cursor !== undefined && { cursor }) });
    items.push(...page.items);
    ({ cursor } = page);
    if (cursor === undefined) return { items, more: false };
  }
  return { items, more: true };
}
