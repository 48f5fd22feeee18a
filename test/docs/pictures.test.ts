/** The pictures that `npm run pictures` makes: pages show each of them, with a text for those who don't see it, and all are small. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { allFiles } from "../tidy/tree.js";
import { FOLDER, MAX_BYTES, MAX_WIDTH_PX, PICTURES } from "./pictures/pictures.js";

const PAGES = allFiles().filter(({ path }) => path.endsWith(".md"));
const TEXT = PAGES.map(({ text }) => text).join("\n");

/** The names of the pictures that a text shows. */
function shownIn(text: string): readonly string[] {
  return [...text.matchAll(/<(?:img|source)\s[^>]*?src(?:set)?="[^"]*?pictures\/([^"]+)"/g)].map(([, name = ""]) => name);
}

/** The images of a text that say nothing to who can't see them. */
function silentIn(text: string): readonly string[] {
  return [...text.matchAll(/<img\s[^>]*>/g)].map(String).filter((image) => !/\salt="[^"]{20,}"/.test(image));
}

/** The width of a WebP in px, from its header: Chromium writes the simple form of a picture without transparency. @throws Error if it is another file */
function widthOf(webp: Buffer): number {
  const form = webp.toString("latin1", 8, 16);
  if (form === "WEBPVP8X") return webp.readUIntLE(24, 3) + 1;
  if (form === "WEBPVP8 ") return webp.readUInt16LE(26) & 0x3fff;
  throw new Error(`${form} is no WebP of Chromium's`);
}

describe("the pictures", () => {
  it("are those that the command makes, and no others", () => {
    expect(readdirSync(FOLDER).toSorted()).toEqual(PICTURES.toSorted());
  });

  it("are all shown on a page; control: one that no page shows is reported", () => {
    const hidden = (names: readonly string[]): readonly string[] => names.filter((name) => !shownIn(TEXT).includes(name));
    expect(hidden([...PICTURES, "other.webp"])).toEqual(["other.webp"]);
  });

  it("are made by the command, if a page shows them", () => {
    expect(shownIn(TEXT).filter((name) => !PICTURES.includes(name))).toEqual([]);
  });

  it("have a text for those who don't see them; control: one without is reported", () => {
    expect(silentIn(TEXT)).toEqual([]);
    expect(silentIn('<img src="docs/pictures/a.webp" alt="">')).toHaveLength(1);
  });

  it.each(PICTURES)("%s is small", (name) => {
    const { size } = statSync(join(FOLDER, name));
    expect(size).toBeGreaterThan(1000);
    expect(size).toBeLessThan(MAX_BYTES);
    if (name.endsWith(".webp")) expect(widthOf(readFileSync(join(FOLDER, name)))).toBe(MAX_WIDTH_PX);
  });
});

describe("the recording of the tour", () => {
  const svg = readFileSync(join(FOLDER, "tour.svg"), "utf8");

  it("shows scenes that proved what they say", () => {
    expect(svg).toContain("The card was charged once.");
    expect(svg).not.toContain("✗");
  });

  it("moves only for readers who want motion, and loads nothing", () => {
    const [still = "", moving = ""] = svg.split("@media(prefers-reduced-motion:no-preference)");
    expect([/animation|@keyframes/.test(still), /animation:r\d+ \d+ms step-end infinite/.test(moving)]).toEqual([false, true]);
    expect(/<script|<image|url\(|https?:(?!\/\/www\.w3\.org\/2000\/svg)/.exec(svg)).toBeNull();
  });
});
