/** Pictures of the console: a real `npm start`, a shop that uses it, and a real Chromium, light and dark. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { startChromium } from "../../support/chromium.js";
import { npmStart } from "../npm-start.js";
import { type Look, fileOf, FOLDER, LOOKS, MAX_WIDTH_PX, VIEWS } from "./pictures.js";
import { BUSY_KEY, LIMIT, openShop, SCHEDULE } from "./shop.js";

/** A README is about 830 px wide: of a page that is drawn larger, its text would be too small there. */
const PAGE_WIDTH_PX = 960;
/** The window is higher than any picture, so that nothing is scrolled away. */
const PAGE_HEIGHT_PX = 1400;
/** The space under the last pictured element, in px. */
const MARGIN_PX = 12;
const QUALITY = 86;

/** The page of a view. */
interface Pictured {
  readonly hash: string;
  /** A text that shows that its data are there. */
  readonly text: string;
  /** A button to press then. */
  readonly press?: string;
  /** The last element in the picture. */
  readonly last: string;
}

const PAGES: Readonly<Record<(typeof VIEWS)[number], Pictured>> = {
  "console-locks": { hash: "#/locks?order=wait", text: BUSY_KEY, last: "main table" },
  "console-schedule": { hash: `#/runs/${SCHEDULE}`, text: "Occurrences", press: "30d", last: '[aria-label="Schedule"]' },
  "console-limit": { hash: `#/limits/${LIMIT}`, text: "Left over time", last: '[aria-label="Queue"]' },
  "console-key": { hash: `#/locks/${BUSY_KEY}`, text: "warehouse-1", last: '[aria-label="Timeline"]' },
};

/** Makes the pictures. @throws Error if there is no Chromium */
export async function pictureConsole(): Promise<void> {
  const browser = await startChromium();
  const service = await npmStart();
  try {
    // Open from the beginning, since a page draws the renewals that it saw.
    const shots = await Promise.all(VIEWS.flatMap((view) => LOOKS.map((look) => openView(browser, service.url, view, look))));
    const shop = await openShop(service.url);
    for (const shot of shots) await shot();
    await shop.close();
  } finally {
    service.kill();
    await browser.close();
  }
}

/** Opens a view, and returns a function that pictures it. */
async function openView(browser: Browser, url: string, view: (typeof VIEWS)[number], look: Look): Promise<() => Promise<void>> {
  const { hash, text, press, last } = PAGES[view];
  const page = await browser.newPage({
    colorScheme: look,
    reducedMotion: "reduce",
    viewport: { width: PAGE_WIDTH_PX, height: PAGE_HEIGHT_PX },
    timezoneId: "UTC",
  });
  await page.goto(`${url}/console${hash}`);
  return async () => {
    await page.getByText(text).first().waitFor();
    if (press !== undefined) {
      const answered = page.waitForResponse(/api\/schedule/);
      await page.getByRole("button", { name: press }).click();
      await answered;
    }
    await writeFile(join(FOLDER, fileOf(view, look)), await webp(page, last));
    await page.close();
  };
}

/** Returns a picture of the page down to the element `last`. Playwright itself writes no WebP, which is much smaller than a PNG. */
async function webp(page: Page, last: string): Promise<Buffer> {
  const box = await page.locator(last).first().boundingBox();
  if (!box) throw new Error(`the console shows no ${last}`);
  const clip = { x: 0, y: 0, width: PAGE_WIDTH_PX, height: Math.ceil(box.y + box.height) + MARGIN_PX, scale: MAX_WIDTH_PX / PAGE_WIDTH_PX };
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: QUALITY, clip });
  return Buffer.from(data, "base64");
}
