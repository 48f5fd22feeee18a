/** The pictures of the docs: they are there, those for a phone are readable on it, and the films of the tour play the scenes of today. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { wrapped } from "../../../examples/flash-sale/sentence.js";
import { SCENES } from "../../../examples/tour/scenes.js";
import { allFiles, ROOT } from "../../tidy/tree.js";
import { FONT_PX } from "./film.js";
import { ITEM_FONT_PX } from "./item.js";
import { FOLDER, ITEM, TOUR_SCENES, TOURS } from "./pictures.js";

/** The width of the site's column on a phone, in px, and the smallest letters that one reads there. A forge's column is wider. */
const PHONE_COLUMN_PX = 342;
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
});

describe("the pictures of the pages", () => {
  const pages = allFiles().filter(({ path }) => path.endsWith(".md"));
  const picturesOf = (text: string): readonly string[] => [...text.matchAll(/(?:src|srcset)="([^":]+)"/g)].map(([, file = ""]) => file);
  const missingFrom = ({ path, text }: { readonly path: string; readonly text: string }): readonly string[] =>
    picturesOf(text).filter((file) => !existsSync(join(ROOT, dirname(path), file)));

  it("are there; control: one that isn't is reported", () => {
    expect(pages.flatMap(missingFrom)).toEqual([]);
    expect(missingFrom({ path: "README.md", text: '<img src="./docs/pictures/none.svg">' })).toEqual(["./docs/pictures/none.svg"]);
  });

  it("have letters that one reads on a phone; control: the wide film has not", () => {
    const lettersOf = (file: string, fontPx: number): number => {
      const [, width] = /viewBox="0 0 (\d+) /.exec(readFileSync(join(FOLDER, file), "utf8")) ?? [];
      return (fontPx * PHONE_COLUMN_PX) / Number(width);
    };
    const [wide, narrow] = TOURS;
    expect(lettersOf(narrow.file, FONT_PX)).toBeGreaterThan(SMALLEST_PX);
    expect(lettersOf(ITEM, ITEM_FONT_PX)).toBeGreaterThan(SMALLEST_PX);
    expect(lettersOf(wide.file, FONT_PX)).toBeLessThan(SMALLEST_PX);
  });

  it.each(["README.md", "docs/site/home.md"])("of the tour are the narrow one on a phone, and else the wide one: %s", (path) => {
    const { text = "" } = pages.find((page) => page.path === path) ?? {};
    const [wide, narrow] = TOURS.map(({ file }) => `\\S*/${file}`);
    expect(text).toMatch(new RegExp(`<picture>\\s*<source media="\\(max-width: 600px\\)" srcset="${narrow}">\\s*<img src="${wide}"`));
  });
});
