/** Lists that come a page at a time, read to their end or to as many as were asked for. */

/** A page; `cursor` asks for the next one. It may be short, even empty, and not the last. */
interface Page<T> {
  readonly items: readonly T[];
  readonly cursor?: string;
}

/** What was read of a list. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** There are more than were read. */
  readonly more: boolean;
}

/** The most that one request may ask for. */
const PAGE_ITEMS = 100;
/** Of a namespace full of idle keys, pages are empty: so many are read, and no more. */
const PAGES = 1000;

/** The first `most` items. */
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
