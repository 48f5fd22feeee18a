/** `holdfast --help`: what stands where, and the width. */
import { describe, expect, it } from "vitest";
import { run } from "./in-process.js";

const WIDTH = 80;

describe("the help", () => {
  it("has the commands first, in groups, then the options, then where the locks are", async () => {
    const { stdout } = await run(["--help"], {});
    expect(stdout.match(/^[A-Z][\w ]*:(?= holdfast|$)/gm)).toEqual([
      ...["Usage:", "Hold:", "Look:", "Operate:", "Serve:", "Other:"],
      ...["Options:", "Where the locks are:", "Example:"],
    ]);
    const groups = Object.fromEntries(
      [...stdout.matchAll(/^(\w+):\n((?: .*\n)+)/gm)].map(([, name = "", lines = ""]) => [name, lines.match(/(?<=^ {2})\w+/gm)]),
    );
    expect(groups).toMatchObject({
      Hold: ["lock", "once", "limit"],
      Look: ["ls", "show", "history", "watch", "runs", "ticks", "limits", "ui"],
      Operate: ["break", "reset", "doctor", "sweep"],
      Serve: ["dev"],
      Other: ["completion", "help"],
    });
  });

  it("wraps between words at the width of the screen", async () => {
    const { stdout } = await run(["--help"], {});
    expect(stdout.split("\n").filter((line) => line.length > WIDTH)).toEqual([]);
  });
});
