/** A gate: what waits at it goes on when somebody opens it. */

/** Shut until it is opened. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

/** A gate that is shut. */
export function gate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
