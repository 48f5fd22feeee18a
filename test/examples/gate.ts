/** A gate: its waiters continue when it opens, or when enough of them have arrived. */

/** A gate that is closed until it is opened. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

/** Creates a closed gate. */
export function gate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Creates a barrier for `count` callers; later callers pass at once. */
export function meeting(count: number): () => Promise<void> {
  const { opened, open } = gate();
  let come = 0;
  return () => {
    if (++come === count) open();
    return opened;
  };
}
