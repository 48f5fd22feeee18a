/** The page as the console's own server serves it. */
import { render } from "preact";
import { goBy } from "./api.js";
import { App } from "./app.js";
import { html } from "./html.js";
import { openSession, OWN_SERVER } from "./own-server.js";

goBy(OWN_SERVER);
await openSession();
render(html`<${App} />`, document.body);
