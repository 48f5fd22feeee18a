/** Where the work of a run stops until its test lets it go on: a runner that is slow, frozen or dead. */

/** A gate in the way of some work. */
export interface Gate {
  /** For the work: resolves once the gate is open. */
  pass(): Promise<void>;
  /** Resolves when the work has come here. */
  readonly reached: Promise<void>;
  /** Lets the work go on, now or whenever it comes. */
  open(): void;
}

/** A gate that is shut. */
export function createGate(): Gate {
  let arrive = (): void => undefined;
  let open = (): void => undefined;
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    reached,
    open: () => open(),
    pass() {
      arrive();
      return opened;
    },
  };
}

/** Returns the error of `promise`, or its value if it didn't reject. */
export function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error: unknown) => error);
}
