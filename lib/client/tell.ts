/** Reports an event to a user's listener. */

/** Calls a user's listener. Its errors and rejections are ignored: a failing metric must not fail the work or end the process. */
export async function tellQuietly<Told extends readonly unknown[]>(
  listener: ((...told: Told) => unknown) | undefined,
  ...told: Told
): Promise<void> {
  try {
    await listener?.(...told);
  } catch {
    // Ignored, as described above.
  }
}
