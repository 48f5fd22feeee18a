/** A gate: what waits at it goes on when somebody opens it, or when enough have come. */

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

/** Where everybody waits until `count` have come; who comes later goes on at once. */
export function meeting(count: number): () => Promise<void> {
  const { opened, open } = gate();
  let come = 0;
  return () => {
    if (++come === count) open();
    return opened;
  };
}
