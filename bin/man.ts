/** The manual page of `holdfast`, in roff. It has the commands, options and examples of `--help`, and the exit statuses. */
import { type Command, Help } from "commander";
import type { CliHost } from "./context.js";
import { EXITS } from "./exit-codes.js";
import { OF_ALL, programFor } from "./program.js";

/** Returns the page of a version. */
export function manPage(version: string): string {
  const program = programFor({} as CliHost, version); // Nothing is carried out.
  const { commands } = program;
  return [
    `.TH HOLDFAST 1 "" "holdfast ${roff(version)}"`,
    ...section("NAME", `holdfast ${roff("- locks on DynamoDB from the command line")}`),
    ...section("SYNOPSIS", `.B holdfast\n${roff(program.usage())}`),
    ...section("DESCRIPTION", roff(program.description()), ...endOf(program)),
    ...section("COMMANDS", ...commands.filter((command) => command.name() !== "help").flatMap((command) => partOf(command, "holdfast"))),
    ...section("OPTIONS OF EVERY COMMAND", ...optionsOf(program)),
    ...section(
      "EXIT STATUS",
      ...Object.values(EXITS).flatMap(({ status, meaning }) => term(String(status), `${meaning.replaceAll("`", "")}.`)),
    ),
    "",
  ].join("\n");
}

/** Returns the part of a command, and those of its own commands. */
function partOf(command: Command, of: string): readonly string[] {
  const name = `${of} ${command.name()}`;
  const own = command.commands.filter((one) => one.name() !== "help").flatMap((one) => partOf(one, name));
  return [`.SS ${quoted(`${name} ${command.usage()}`)}`, roff(command.description()), ...optionsOf(command), ...endOf(command), ...own];
}

function optionsOf(command: Command): readonly string[] {
  const help = new Help();
  const options = help.visibleOptions(command).filter(({ long }) => long !== "--help" || !command.parent);
  return options.flatMap((option) => term(option.flags, help.optionDescription(option)));
}

/** Returns what the help of a command says below its options, such as an example. Lines that begin with a space stay lines. */
function endOf(command: Command): readonly string[] {
  let printed = "";
  command.configureOutput({ writeOut: (text) => void (printed += text) }).outputHelp();
  const blocks = printed.slice(command.helpInformation().length).replace(OF_ALL, "").trim().split("\n\n");
  return blocks.flatMap((block) => (block === "" ? [] : [".PP", roff(block)]));
}

function section(title: string, ...lines: readonly string[]): readonly string[] {
  return [`.SH ${quoted(title)}`, ...lines];
}

function term(name: string, meaning: string): readonly string[] {
  return [".TP", `.B ${quoted(name)}`, roff(meaning)];
}

function quoted(text: string): string {
  return `"${roff(text).replaceAll('"', '""')}"`;
}

/** Returns text that roff prints as it is. */
function roff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^(?=[.'])/gm, "\\&");
}
