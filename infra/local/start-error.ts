/** Start errors of the local service: one line for the user, without a stack. */

/** A reason not to start. The message is one sentence with advice. */
export class StartError extends Error {
  override readonly name: string = "StartError";
}

/** This machine has no engine, which is not a mistake: records can be kept in memory instead. */
export class NoEngineHere extends StartError {
  override readonly name = "NoEngineHere";
}

/** Another process listens on the port. */
export class PortTaken extends StartError {
  override readonly name = "PortTaken";
}
