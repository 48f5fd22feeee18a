/** How the site's search ranks what it finds. */
export const SEARCH_OPTIONS = {
  // Two letters begin too many words.
  prefix: (term: string): boolean => term.length > 2,
  // Of a question, the words that every page has say nothing. They would decide, since a page is ranked by how many words it has.
  processTerm: (term: string): string | null =>
    /^(?:a|an|and|can|do|does|for|from|how|i|in|is|it|my|of|on|or|the|to|what|when|why|with)$/i.test(term) ? null : term.toLowerCase(),
  // Below seven letters a word with another letter is another word. VitePress sends each function's text to the page, so it stands alone.
  fuzzy: (term: string): number | false => (term.length < 7 ? false : 0.1),
  boost: { title: 4, text: 2, titles: 1 },
  // A search for a job wants its recipe, or else a guide, not an export of that name, and before a page of reference.
  boostDocument: (id: string): number => {
    if (id.includes("/recipes/")) return 2;
    if (id.includes("/docs/sdk")) return 0.5;
    return /\/docs\/(?:command-line|comparison|errors|http-api|performance)#/.test(id) ? 0.7 : 1;
  },
};
