/** The page about telemetry names what the sources name: every span, attribute and metric, and no other. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";
import { guide } from "./snippets.js";

const NAME = /holdfast\.[a-z_]+(?:\.[a-z]+)?/g;
const namesIn = (text: string): readonly string[] => [...new Set(text.match(NAME))].sort();
const source = (name: string): string => readFileSync(join(ROOT, "lib/otel", name), "utf8");

describe("the page about telemetry", () => {
  const { text } = guide("telemetry");
  const [, ...code] = text.split("`");
  const quoted = code.filter((_part, at) => at % 2 === 0).join("\n");

  it("has the names that the sources have", () => {
    const named = (source("telemetry.ts") + source("instruments.ts")).match(/"holdfast[.\w]+"/g) ?? [];
    expect(named.length).toBeGreaterThan(15);
    expect(namesIn(quoted)).toEqual(namesIn(named.join("\n")));
  });
});
