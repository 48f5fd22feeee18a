/** The port of `npm run try`. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const tried = (PORT: string) => {
  const { EMULATOR_FOLDER: _ofThisRun, ...env } = process.env;
  const words = ["--import", "tsx", fileURLToPath(new URL("main.ts", import.meta.url))];
  const { status, stderr } = spawnSync(process.execPath, words, { env: { ...env, PORT }, encoding: "utf8" });
  return { status, stderr: stderr.trim() };
};

it("is that of PORT, and if another program has it, the next step is said", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const says = `try: port ${port} is in use: by an emulator that runs already, or by another program. Set PORT to another`;
  expect(tried(String(port))).toEqual({ status: 1, stderr: says });
  server.close();
});

it.each(["0", "65536", "abc", ""])("is refused as %j", (port) => {
  expect(tried(port)).toEqual({ status: 1, stderr: `try: PORT=${port} is not a port: it may be 1 to 65535` });
});
