/** The films of the tour, as `npm run pictures` made them: they play the scenes of today, and a phone's is readable. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { wrapped } from "../../../examples/flash-sale/sentence.js";
import { SCENES } from "../../../examples/tour/scenes.js";
import { allFiles, ROOT } from "../../tidy/tree.js";
import { FONT_PX } from "./film.js";
import { FOLDER, TOUR_SCENES, TOURS } from "./pictures.js";

/** The width of a text on a phone's page, in px, and the smallest letters that one reads there. */
const PHONE_TEXT_PX = 358;
const SMALLEST_PX = 10;

const films = TOURS.map(({ file, columns }) => ({ file, columns, svg: readFileSync(join(FOLDER, file), "utf8") }));

/** The titles of the scenes, in the lines of a terminal of so many columns, that the film doesn't show. */
function missingIn(svg: string, columns: number): readonly string[] {
  const shown = new Set([...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text = ""]) => text));
  return TOUR_SCENES.flatMap((name) => wrapped(SCENES[name]!.title.split(" "), columns - 1)).filter((line) => !shown.has(line));
}

describe("the films of the tour", () => {
  it.each(films)("have the titles of the scenes as they are: $file; control: in other lines not", ({ svg, columns }) => {
    expect(missingIn(svg, columns)).toEqual([]);
    expect(missingIn(svg, columns / 2)).not.toEqual([]);
  });

  it("are readable on a phone, the narrow one; control: the wide one is not", () => {
    const lettersOf = (svg: string): number => (FONT_PX * PHONE_TEXT_PX) / Number(/viewBox="0 0 (\d+) /.exec(svg)?.[1]);
    const [wide, narrow] = films.map(({ svg }) => lettersOf(svg));
    expect(narrow).toBeGreaterThan(SMALLEST_PX);
    expect(wide).toBeLessThan(SMALLEST_PX);
  });
});

describe("the pictures of the pages", () => {
  const pages = allFiles().filter(({ path }) => path.endsWith(".md"));
  const picturesOf = (text: string): readonly string[] => [...text.matchAll(/(?:src|srcset)="([^":]+)"/g)].map(([, file = ""]) => file);
  const missing = (pages_: readonly { readonly path: string; readonly text: string }[]): readonly string[] =>
    pages_.flatMap(({ path, text }) => picturesOf(text).filter((file) => !existsSync(join(ROOT, dirname(path), file))));

  it("are there; control: one that isn't is reported", () => {
    expect(missing(pages)).toEqual([]);
    expect(missing([{ path: "README.md", text: '<img src="./docs/pictures/none.svg">' }])).toEqual(["./docs/pictures/none.svg"]);
  });

  it.each(["README.md", "docs/site/home.md"])("of the tour are the narrow one on a phone, and else the wide one: %s", (path) => {
    const { text = "" } = pages.find((page) => page.path === path) ?? {};
    const [wide, narrow] = TOURS.map(({ file }) => `\\S*/${file}`);
    expect(text).toMatch(new RegExp(`<picture>\\s*<source media="\\(max-width: 600px\\)" srcset="${narrow}">\\s*<img src="${wide}"`));
  });
});
