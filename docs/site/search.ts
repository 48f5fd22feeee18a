/** How the site's search ranks what it finds. */
export const SEARCH_OPTIONS = {
  prefix: true,
  // Below seven letters a word with another letter is another word. A function is sent as its text too.
  fuzzy: (term: string): number | false => (term.length < 7 ? false : 0.1),
  boost: { title: 4, text: 2, titles: 1 },
  // A search for a job wants its recipe, or else a guide, not an export of that name, and before a page of reference. VitePress sends the text of
  // this function to the page, so it stands alone.
  boostDocument: (id: string): number => {
    if (id.includes("/recipes/")) return 2;
    if (id.includes("/docs/sdk")) return 0.5;
    return /\/docs\/(?:command-line|comparison|errors|http-api|performance)#/.test(id) ? 0.7 : 1;
  },
};
