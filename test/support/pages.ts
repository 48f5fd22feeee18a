/** All pages of a list: of a client's keys, or of its runs. */

interface Page {
  readonly items: readonly { readonly key: string }[];
  readonly cursor?: string;
}

/** Reads all pages, and returns the keys of each. */
export async function pages<const Query extends object>(
  from: { list(query: Query): Promise<Page> },
  query: Query,
): Promise<readonly (readonly string[])[]> {
  const found: (readonly string[])[] = [];
  for (let cursor: string | undefined; ;) {
    const { items, cursor: next } = await from.list({ ...query, ...(cursor !== undefined && { cursor }) });
    found.push(items.map(({ key }) => key));
    if (next === undefined) return found;
    cursor = next;
  }
}
