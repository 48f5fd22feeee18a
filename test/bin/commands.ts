/** The commands of the command line, in the groups and the order of its help. */
export const GROUPS = {
  Hold: ["lock", "once", "limit"],
  Look: ["ls", "show", "history", "watch", "runs", "ticks", "limits", "ui"],
  Operate: ["break", "reset", "doctor", "sweep"],
  Serve: ["dev"],
  Other: ["completion", "help"],
} as const;

/** All but the help itself. */
export const COMMANDS: readonly string[] = Object.values(GROUPS)
  .flat()
  .filter((name) => name !== "help");
