/** A gate that stops some work until the test opens it: the worker is slow, frozen or dead. */

/** A gate in the way of some work. */
export interface Gate {
  /** Called by the work: resolves once the gate is open. */
  pass(): Promise<void>;
  /** Resolves when the work has reached the gate. */
  readonly reached: Promise<void>;
  /** Resolves when the gate opens. */
  readonly opened: Promise<void>;
  /** Lets the work continue, now or when it arrives. */
  open(): void;
}

/** Creates a closed gate. */
export function createGate(): Gate {
  let arrive = (): void => undefined;
  let open = (): void => undefined;
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    reached,
    opened,
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
