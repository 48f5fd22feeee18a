/** The signals that this process is sent: they end it, unless something under way takes them. */

const CAUGHT = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"] as const satisfies readonly NodeJS.Signals[];

/** Takes signals from now on. */
export class Signals {
  readonly #end: (name: NodeJS.Signals) => void;
  #listener: (name: NodeJS.Signals) => void;

  /** @param host the process that is sent them
   * @param end gives up whatever is under way, at once */
  constructor(host: Pick<NodeJS.Process, "on">, end: (name: NodeJS.Signals) => void) {
    this.#end = this.#listener = end;
    for (const name of CAUGHT) host.on(name, () => this.#listener(name));
  }

  /** Hands what comes from now on to `listener`, and to nobody else. */
  handTo(listener: (name: NodeJS.Signals) => void): void {
    this.#listener = listener;
  }

  /** From now on signals end the process again. */
  handBack(): void {
    this.#listener = this.#end;
  }
}
