/** A plug in front of a server on this machine: a test pulls it, and what is behind it refuses connections, answers errors or is silent. */
import { type Server, type Socket, connect, createServer } from "node:net";

/** The state of a plug. `refuses`: nothing listens; `errors`: each connection is answered with 503; `silent`: it is accepted, and not answered. */
export type PlugState = "open" | "refuses" | "errors" | "silent";

/** A plug with an address of its own. */
export interface Plug {
  readonly url: string;
  /** Ends the connections that are open, and treats later ones so. */
  set(state: PlugState): Promise<void>;
  close(): Promise<void>;
}

const ERROR = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 60\r\nconnection: close\r\n\r\n";

/** Starts an open plug in front of the server at `target`. */
export async function startPlug(target: string): Promise<Plug> {
  const { port: behind } = new URL(target);
  const sockets = new Set<Socket>();
  let state: PlugState = "open";
  let server: Server | undefined;
  let port = 0;
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
    if (state === "errors") socket.once("data", () => socket.end(ERROR));
    if (state !== "open") return void socket.resume();
    const through = connect(Number(behind), "127.0.0.1");
    sockets.add(through);
    through.on("error", () => socket.destroy()).on("close", () => (sockets.delete(through), socket.destroy()));
    socket.on("close", () => through.destroy());
    socket.pipe(through).pipe(socket);
  };
  const listen = async (): Promise<void> => {
    server = createServer(accept);
    await new Promise<void>((resolve) => server?.listen(port, "127.0.0.1", resolve));
    ({ port } = server.address() as { readonly port: number });
  };
  const end = async (): Promise<void> => {
    const ending = server;
    server = undefined;
    for (const socket of sockets) socket.destroy();
    if (ending) await new Promise((resolve) => ending.close(resolve));
  };
  await listen();
  return {
    url: `http://127.0.0.1:${port}`,
    async set(next) {
      await end();
      state = next;
      if (next !== "refuses") await listen();
    },
    close: end,
  };
}
