/** The exports of the package, each a part of docs/sdk.md, which `npm run docs:reference` makes from the sources. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The reference of all exports. */
export const SDK = fileURLToPath(new URL("../sdk.md", import.meta.url));

/** An export with its text in markdown. */
interface Exported {
  readonly name: string;
  /** The name of its page. Names that differ in capitals alone share one, as some file systems can't tell them apart. */
  readonly page: string;
  readonly text: string;
}

/** Returns the exports in the order of the reference. */
export function exported(): readonly Exported[] {
  const [, ...parts] = readFileSync(SDK, "utf8").split(/^### /m);
  return parts.map((part) => {
    const [name = "", ...lines] = part.split("\n");
    return { name, page: name.toLowerCase(), text: lines.join("\n").replace(/^## [\s\S]*/m, "") };
  });
}
