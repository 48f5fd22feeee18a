/** A page for each export. */
import { exported, SDK } from "../symbols.ts";

export default {
  watch: [SDK],
  paths(): { params: { symbol: string }; content: string }[] {
    const all = exported();
    return [...new Set(all.map(({ page }) => page))].map((symbol) => {
      const parts = all.filter(({ page }) => page === symbol);
      return { params: { symbol }, content: parts.map(({ name, text }) => `# ${name}\n${text}`).join("\n") };
    });
  },
};
