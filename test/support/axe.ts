/** The faults that axe finds in a page. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

/** Returns the rules of axe that the page breaks. axe runs in a world of its own, which the page's policy doesn't reach. */
export async function faultsOf(page: Page): Promise<readonly string[]> {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId: contextId } = await session.send("Page.createIsolatedWorld", {
    frameId: frameTree.frame.id,
    worldName: "axe",
  });
  const source = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await session.send("Runtime.evaluate", { contextId, expression: source });
  const run = `axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => id === "label" ? id : id + ": " + nodes.map(({ html }) => html).join(" ")))`;
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    contextId,
    expression: run,
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  await session.detach();
  return result.value as readonly string[];
}
