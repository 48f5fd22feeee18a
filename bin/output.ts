/** Printing to a stream that may be slow, full or gone. */

/** What is done when a stream takes no more. */
export interface PrintFailures {
  /** Nobody listens any more: whoever listened has heard enough. */
  readonly onClosed: () => void;
  /** The text could not be written, as on a full disk. Called once. */
  readonly onFailed: (error: Error) => void;
}

/** Prints to `stream`; resolves when the text is written or lost, so that more may be printed. */
export function printerOn(stream: NodeJS.WriteStream, { onClosed, onFailed }: PrintFailures): (text: string | Uint8Array) => Promise<void> {
  let isGone = false;
  const lost = (error: Error): void => {
    if (isGone) return;
    isGone = true;
    if ((error as NodeJS.ErrnoException).code === "EPIPE") onClosed();
    else onFailed(error);
  };
  stream.on("error", lost);
  return (text) =>
    new Promise((resolve) => {
      if (isGone) return resolve();
      stream.write(text, (error) => {
        if (error) lost(error);
        resolve();
      });
    });
}
