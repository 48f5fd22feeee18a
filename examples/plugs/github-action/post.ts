/** The post step of the action: lets the key go, and fails the job if the lease was lost before. */
const { STATE_port: port } = process.env;
if (port !== undefined) {
  const ended = await fetch(`http://127.0.0.1:${port}/`, { method: "POST" }).then(
    (response) => response.text(),
    () => "the process that held the key is gone, and the key is free when its lease ends",
  );
  console.log(ended === "released" ? ended : `::error::${ended}`);
  if (ended !== "released") process.exitCode = 1;
}
