/** The signals that this process is sent: handed to whatever is under way, and never its end while something is. */

const HANDED_ON = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"] as const satisfies readonly NodeJS.Signals[];

/** Takes signals from now on. */
export class Signals {
  #listener: ((name: NodeJS.Signals) => void) | undefined;

  constructor(host: Pick<NodeJS.Process, "on">) {
    for (const name of HANDED_ON) host.on(name, () => this.#listener?.(name));
  }

  /** Hands what comes from now on to `listener`, and to nobody else. */
  handTo(listener: (name: NodeJS.Signals) => void): void {
    this.#listener = listener;
  }
}
