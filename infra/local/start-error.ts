/** Why something of the local service could not start: one line for the person who started it, never a stack. */

/** A reason not to start. The message is one sentence, and says what to do about it. */
export class StartError extends Error {
  override readonly name: string = "StartError";
}

/** This machine has no engine of ours at all, which is nobody's mistake: records in memory may serve instead. */
export class NoEngineHere extends StartError {
  override readonly name = "NoEngineHere";
}
