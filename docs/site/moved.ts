/** Pages that became a part of another: the site sends on whoever comes by their old address. */
export const MOVED: Readonly<Record<string, string>> = {
  "docs/install": "docs/start-here#5-install-it-in-a-project-of-your-own",
  "docs/what-it-leaves-out": "docs/faq#what-it-leaves-out",
};
