/** How the site's search ranks what it finds. */
export const SEARCH_OPTIONS = {
  prefix: true,
  fuzzy: 0.1,
  boost: { title: 4, text: 2, titles: 1 },
  // A search for a job wants its recipe, or else a guide, not an export of that name. VitePress sends the text of this function to the page,
  // so it stands alone.
  boostDocument: (id: string): number => (id.includes("/recipes/") ? 2 : id.includes("/docs/sdk") ? 0.5 : 1),
};
