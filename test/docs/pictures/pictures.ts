/** The pictures of the docs: their names, and the largest width. `npm run pictures` makes them, but for the item's. */
import { join } from "node:path";
import { ROOT } from "../../tidy/tree.js";

/** The folder of the pictures. It is not in the package. */
export const FOLDER = join(ROOT, "docs/pictures");

/** The largest width of a picture, in px. */
export const MAX_WIDTH_PX = 1280;

/** The colours of a reader's screen. A page shows the picture that fits. */
export const LOOKS = ["light", "dark"] as const;

/** A reader's colours. */
export type Look = (typeof LOOKS)[number];

/** The views of the console that are pictured. The limit comes first: it fills all the time, and a full one has no picture. */
export const VIEWS = ["console-limit", "console-locks", "console-key", "console-schedule"] as const;

/** The recordings of the tour, in colours of their own, and the columns of their terminals. The narrow one is for phones. */
export const TOURS = [
  { file: "tour.svg", columns: 98 },
  { file: "tour-narrow.svg", columns: 50 },
] as const;

/** An item as it is in the table, which `npx vitest run test/docs/protocol -u` draws. */
export const ITEM = "item.svg";

/** The scenes of the tour that are recorded, by their names on the command line. */
export const TOUR_SCENES = ["crash", "zombie", "payment"] as const;

/** The file of a view in these colours. */
export function fileOf(view: (typeof VIEWS)[number], look: Look): string {
  return `${view}-${look}.webp`;
}
