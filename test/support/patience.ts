/** For `vi.waitFor`, whose own patience is a second: so long that a machine under load gets there. */
export const PATIENCE = { timeout: 15_000, interval: 1 };
