/** The commands about a table itself, with their options: `doctor`, and `sweep`, which deletes what is over. */
import type { Command } from "commander";
import type { CliHost, GlobalOptions } from "../context.js";
import { example } from "../inspect/commands.js";
import { some } from "../values.js";
import type { SweepArgs } from "./sweep.js";

/** Adds `doctor` and `sweep`. */
export function addTableCommands(program: Command, host: CliHost): void {
  program
    .command("doctor")
    .usage("[options]")
    .summary("say whether a table is fit for locks, or services serve one")
    .description(
      "Say whether a table is fit for locks: its keys, its TTL, no index, and no replicas that are not strongly consistent. With URLs, say of " +
        "each whether a service answers, whether its table lists the URL, and whether it is the table of the first.",
    )
    .addHelpText("after", example("doctor --table locks"))
    .action(async () => {
      const globals = program.opts<GlobalOptions>();
      const { doctor } = await import("./doctor.js");
      host.ends(await doctor(globals, host.processContext(globals)));
    });
  program
    .command("sweep")
    .usage("[options]")
    .summary("delete what is over, of a table without TTL")
    .description(
      "Delete the keys, runs and limits that nobody has used for a day, straight on a table that has no TTL. What is in use stays: each is " +
        "deleted on condition that nobody has used it since. With --namespace, only that namespace's.",
    )
    .option("--dry-run", "delete nothing: only count what is over")
    .option("--max <n>", "end after so many (default: all)", some)
    .addHelpText("after", example("sweep --table locks --dry-run"))
    .action(async (options: SweepArgs) => {
      const globals = program.opts<GlobalOptions>();
      const { sweep } = await import("./sweep.js");
      host.ends(await sweep(options, globals, host.processContext(globals)));
    });
}
