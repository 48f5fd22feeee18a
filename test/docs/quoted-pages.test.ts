/** Pages whose code is all quoted from the examples, word for word. */
import { describe } from "vitest";
import { readPage } from "./generated.js";
import { describeQuotes } from "./quotes.js";

describe.each(["docs/choosing-a-lock.md", "docs/do-you-need-a-lock.md", "docs/plugs.md"])("%s", (path) =>
  describeQuotes(path, readPage(path)),
);
