/** The limits in use: what is left of each rate, when all of it is back, and how many permits are out. */
import { useContext, useState } from "preact/hooks";
import { formatSeconds, rateText } from "../text/duration.js";
import type { LimitOfKey, ListData } from "../data.js";
import { ResetLimitDialog } from "./dialog.js";
import { Search } from "./filters.js";
import { type ViewProps, SharedContext, doneWith, useIsKnown } from "./hooks.js";
import { type Content, html } from "./html.js";
import { useList } from "./list.js";
import { bar, changeButton, empty, Freshness, head, keyName, tryIt } from "./parts.js";
import { hrefOf } from "./route.js";
import { permitsText, sentence, whenText } from "./words.js";

const FILTERS = { find: "", all: "" };

export function LimitsView(props: ViewProps): Content {
  const { about, query } = props;
  const { filters, set, polled, age, partOf, none, more } = useList<ListData<LimitOfKey>, typeof FILTERS>("limits", about, query, FILTERS);
  const { isUtc } = useContext(SharedContext);
  const { data, atMs = 0, error } = polled;
  const isKnown = useIsKnown(polled);
  const [resetting, setResetting] = useState<string>();
  return html`<main id="main" tabindex="-1">
    <h1 class="visually-hidden">Limits</h1>
    <${Search} label="Find a limit" value=${filters.find} onChange=${(find: string) => set({ find })} place="limits">
      <p class="count" role="status">${data && `${data.fits}${data.more ? " or more" : ""} in use`}</p>
    </${Search}>
    <${Freshness} polled=${polled} />
    ${partOf("Searched", "limits")}
    ${data && (data.items.length > 0 ? table(data.items) : none(nothing))}
    ${!data && !error && html`<p class="loading">Reading the limits…</p>`}
    ${more("limits")}
    ${
      resetting !== undefined &&
      html`<${ResetLimitDialog}
        name=${resetting}
        isKnown=${isKnown}
        onClose=${() => setResetting(undefined)}
        onDone=${doneWith(props, polled)}
      />`
    }
  </main>`;

  function table(items: readonly LimitOfKey[]): Content {
    return html`<table class=${`rows limits ${age}`}>
      ${head("Limit", "Left", "All back")}
      <tbody>
        ${items.map(
          ({ key, parts, fullInMs, permits, rates = [], remaining = [] }) =>
            html`<tr key=${key}>
              <th scope="row"><a class="row-link" href=${hrefOf("limits", key)}>${keyName(key, parts)}</a></th>
              <td class="wide">
                ${rates.map((rate, at) => part(rateText(rate), remaining[at] ?? 0, rate.burst))}
                ${permits && html`${part(`${permits.of} at once`, permits.of - permits.out, permits.of)}<span class="muted">${sentence(permitsText(permits))}</span>`}
              </td>
              <td data-label="All back" class=${fullInMs === undefined ? "muted none" : ""}>
                ${fullInMs === undefined ? "–" : html`${whenText(atMs + fullInMs, atMs, isUtc)} <span class="muted">(in ${formatSeconds(fullInMs)})</span>`}
                ${about.canChange && fullInMs !== undefined && [" ", changeButton("Reset…", isKnown, () => setResetting(key), { class: "danger quiet others", "aria-label": `Reset ${key}` })]}
              </td>
            </tr>`,
        )}
      </tbody>
    </table>`;
  }

  function nothing(): Content {
    if (filters.find !== "" || data?.more === true) return empty("No limit that was read fits");
    return empty("No limit is in use", "A limit is here while something of it is taken.", tryIt(about, "limit demo --rate 5/1m -- date"));
  }
}

/** Returns what is left of a rate or of the permits. */
function part(name: string, left: number, most: number): Content {
  return html`<span class="lease">
    <span>${name}</span>${bar(left / most, "held")}
    <span class=${left > 0 ? "left" : "left some"}>${left} of ${most}</span>
  </span>`;
}
