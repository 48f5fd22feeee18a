/** The signals of this process. They end it, unless an operation handles them. */

const CAUGHT = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"] as const satisfies readonly NodeJS.Signals[];

/** Handles signals from its construction on. */
export class Signals {
  readonly #end: (name: NodeJS.Signals) => void;
  #listener: (name: NodeJS.Signals) => void;

  /**
   * @param host the process that receives the signals
   * @param end cancels the current operation at once
   */
  constructor(host: Pick<NodeJS.Process, "on">, end: (name: NodeJS.Signals) => void) {
    this.#end = this.#listener = end;
    for (const name of CAUGHT) host.on(name, () => this.#listener(name));
  }

  /** Passes all further signals to `listener` only. */
  handTo(listener: (name: NodeJS.Signals) => void): void {
    this.#listener = listener;
  }

  /** Makes signals end the process again. */
  handBack(): void {
    this.#listener = this.#end;
  }
}
