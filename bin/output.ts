/** Prints to a stream that can be slow, full or closed. */

/** The callbacks for a stream that accepts no more. */
export interface PrintFailures {
  /** Called if the reader has closed the stream. */
  readonly onClosed: () => void;
  /** Called once if the text could not be written, for example on a full disk. */
  readonly onFailed: (error: Error) => void;
}

/** Returns a function that prints to `stream` and resolves when the text is written or lost, so that more can be printed. */
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
