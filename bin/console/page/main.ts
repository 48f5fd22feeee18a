/** The page as the console's own server serves it. */
import { render } from "preact";
import { goBy } from "./api.js";
import { App } from "./app.js";
import { html } from "./html.js";
import { keepSecret, OWN_SERVER } from "./own-server.js";

keepSecret();
goBy(OWN_SERVER);
render(html`<${App} />`, document.body);
