/**
 * `holdfast ui`: the console on 127.0.0.1, over the caller's own lock client. Whoever opens it acts with the caller's credentials, so each
 * start makes a secret: the printed address has it, and the first browser that opens the address exchanges it for a cookie.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createLocalServer } from "../../infra/local/local-server.js";
import { CliError } from "../cli-error.js";
import type { CommandContext } from "../context.js";
import { PAID_POLL_MS } from "../../console/handlers.js";
import { type ConsoleOptions, CONSOLE_PATH, consoleOf } from "../../console/server.js";

/** The ports, the place of the locks, and the rights of the page. */
export interface UiArgs extends Pick<ConsoleOptions, "where" | "canChange" | "cliOptions" | "deployedLog" | "adviceOn"> {
  /** The ports to try in this order; 0 is any free one. */
  readonly ports: readonly number[];
}

const HOST = "127.0.0.1";

/** Serves the page until a signal, which counts as success. @throws CliError if no port is free */
export async function ui({ ports, ...shown }: UiArgs, context: CommandContext): Promise<number> {
  const { locks, version, print, asJson, screen, signals } = context;
  const { where, canChange } = shown;
  const secret = randomBytes(24).toString("base64url");
  const page = consoleOf({ locks, ...shown, pollMs: PAID_POLL_MS, secret });
  const server = createLocalServer((request, response) => {
    if (!page(request, response)) response.writeHead(404).end();
  });
  const port = await listenOnOneOf(server, ports);
  try {
    const url = `http://${HOST}:${port}${CONSOLE_PATH}#secret=${secret}`;
    const rights = canChange
      ? "It may break holds, and reset runs and limits."
      : "It only reads; --allow-changes lets it break holds, and reset runs and limits.";
    const ready = { event: "ready", url, pid: process.pid, version, where, canChange };
    const text = `Open ${screen.colors.bold(url)}\nIt shows ${where} with your credentials. ${rights}\nThe address works once, for the browser that opens it first. Ctrl-C ends it.\n`;
    const ended = new Promise((resolve) => signals.handTo(resolve));
    await print(asJson ? `${JSON.stringify(ready)}\n` : text);
    await ended;
    return 0;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function listenOnOneOf(server: Server, [port = 0, ...others]: readonly number[]): Promise<number> {
  server.listen(port, HOST);
  try {
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  } catch (error) {
    if (others.length > 0) return listenOnOneOf(server, others);
    throw new CliError("config", `the page can't be served on ${HOST}:${port}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`, {
      next: "Say another by --port, or --port 0 for any free one.",
    });
  }
}
