/** `holdfast --help`: what stands where, and the width. */
import { describe, expect, it } from "vitest";
import { manPage } from "../../bin/man.js";
import { COMMANDS, GROUPS } from "./commands.js";
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
    expect(groups).toMatchObject(GROUPS);
  });

  it("wraps between words at the width of the screen", async () => {
    const { stdout } = await run(["--help"], {});
    expect(stdout.split("\n").filter((line) => line.length > WIDTH)).toEqual([]);
  });
});

describe("the manual page", () => {
  const page = manPage("1.2.3").replaceAll("\\-", "-").replaceAll("\\e", "\\");
  /** The parts of the page by the command that each is about. */
  const parts = new Map(page.split(/^\.S[SH] "/m).map((part) => [part.slice(0, part.search(/ [[A-Za-z|]*[A-Z[|]|"/)), part]));

  it.each(COMMANDS)("has the options and examples of the help: %s", async (command) => {
    const help = (await run([...command.split(" "), "--help"], {})).stdout.replace(/\nEvery command also.*/, "");
    const part = parts.get(`holdfast ${command}`) ?? "";
    const flags = [...help.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, flag = ""]) => flag).filter((flag) => flag !== "--help");
    expect(flags.filter((flag) => !part.includes(flag))).toEqual([]);
    const examples = help.match(/^ {2}\$ .*$/gm) ?? [];
    expect([examples.length > 0, examples.filter((line) => !part.includes(line))]).toEqual([true, []]);
  });

  it("has no line that roff takes for a request but those of the page", () => {
    expect(new Set(page.match(/^[.']\S*/gm))).toEqual(new Set([".TH", ".SH", ".SS", ".B", ".TP", ".PP"]));
  });
});
