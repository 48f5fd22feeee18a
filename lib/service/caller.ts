/** Whose behalf the service acts on. What a gateway vouched for, never what a request says of itself. */

/** Who asks, as the gateway authenticated them. */
export interface Caller {
  /** Who may renew and release what this caller acquires. */
  readonly principal: string;
  /** Whose keys these are; no `/`. Callers of different namespaces never meet. */
  readonly namespace: string;
  readonly requestId: string;
}
