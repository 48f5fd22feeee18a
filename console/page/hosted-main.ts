/**
 * The page as a deployed API serves it. Its files hold no data, so anybody may load them; every look and every change is a request to the
 * API's own routes with the user's token, which the same authorizer checks as for any other caller.
 */
import { render } from "preact";
import { useState } from "preact/hooks";
import { type Handlers, handlersOf, PAID_POLL_MS } from "../handlers.js";
import { type DataSource, ApiError, readFrom } from "./api.js";
import { App } from "./app.js";
import { type Content, html } from "./html.js";
import { operatorWith } from "./operator.js";
import "./sign-in.css";

/** A token as a header may carry it. */
const TOKEN = /^[\w.~+/-]+=*$/;

/** Returns the way to the data through handlers in this page. */
function wayThrough({ answers, changes }: Handlers): DataSource {
  const none = (): never => {
    throw new ApiError({ code: "console", message: "This page may only read. Load it again, and choose to make changes." });
  };
  return {
    read: async (path, query, reader) => (answers[path] ?? none)(query, reader),
    change: async (path, body) => (changes[path] ?? none)(body),
  };
}

function Hosted(): Content {
  const [isIn, setIn] = useState(false);
  const [refusal, setRefusal] = useState<string>();
  const enter = (token: string, canChange: boolean): void => {
    const onUnaccepted = (): void => {
      setRefusal("The API does not accept this token: its time is over, or it has another issuer or audience.");
      setIn(false);
    };
    const cliOptions = `--url ${location.href.replace(/\/console.*/, "")}`;
    const locks = operatorWith(token, onUnaccepted);
    readFrom(wayThrough(handlersOf({ locks, where: location.host, canChange, pollMs: PAID_POLL_MS, cliOptions })));
    setRefusal(undefined);
    setIn(true);
  };
  return isIn ? html`<${App} />` : html`<${SignIn} refusal=${refusal} enter=${enter} />`;
}

interface SignInProps {
  readonly refusal: string | undefined;
  readonly enter: (token: string, canChange: boolean) => void;
}

function SignIn({ refusal, enter }: SignInProps): Content {
  const [wrong, setWrong] = useState<string>();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const entered = new FormData(event.target as HTMLFormElement);
    const token = (entered.get("token") as string).trim().replace(/^Bearer\s+/i, "");
    if (TOKEN.test(token)) enter(token, entered.has("changes"));
    else setWrong("This is no token. A token is one word of letters, digits and dots.");
  };
  const message = wrong ?? refusal;
  return html`<main id="main" class="sign-in">
    <h1>holdfast</h1>
    <p>The locks and runs of <strong>${location.host}</strong>.</p>
    ${message !== undefined && html`<div class="notice over" role="alert"><p>${message}</p></div>`}
    <form onSubmit=${submit} autocomplete="off">
      <label class="field wide">
        <span>Bearer token, with the scope for operators</span>
        <input class="masked" name="token" required autofocus spellcheck="false" autocapitalize="off" autocomplete="off" />
      </label>
      <label class="check">
        <input type="checkbox" name="changes" />
        Let me break holds, and reset runs and limits
      </label>
      <div class="buttons"><button type="submit">Open</button></div>
      <p class="muted">
        It is an access token of the stack's issuer (jwt in its properties), as any caller of this API sends it. For one, sign in there.
        Only this tab knows the token, until it is closed or loaded again.
      </p>
    </form>
  </main>`;
}

render(html`<${Hosted} />`, document.body);
