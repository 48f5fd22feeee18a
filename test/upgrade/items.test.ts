/**
 * Tables of every version are served by this one. `items` has a file for each version that wrote other items than the
 * version before it. A file never changes once its version is released.
 *
 * If this version writes other items now, the version before must serve them too (docs/operating.md, on upgrading). Then
 * record them, beside those of the versions before:
 *
 *     npx vitest run test/upgrade/items -u
 */
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { VERSION } from "../../lib/core/version.js";
import { freshTable } from "../support/engine.js";
import { continued, FOLDER, RECORDED, recordedBy, STORIES, textOf, written } from "./stored.js";

describe.each(RECORDED)("a table that version %s wrote", async (version) => {
  const recorded = recordedBy(version);
  const table = await freshTable();

  it.each(STORIES.filter(({ name }) => name in recorded))("is served: $name", async (story) => {
    await continued(story, recorded[story.name]!, table);
  });
});

it("the latest recorded version wrote the same items as this one", { timeout: 60_000 }, async () => {
  const latest = RECORDED.at(-1) ?? VERSION;
  const file = join(FOLDER, `${inject("isRecording") ? VERSION : latest}.json`);
  await expect(textOf(await written()), `other items than those of ${latest}: see the top of this file`).toMatchFileSnapshot(file);
});
