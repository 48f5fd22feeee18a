/** The limits in use: what is left of each rate, and when they are full again. */
import { useContext, useState } from "preact/hooks";
import { exactDuration, formatSeconds } from "../../duration.js";
import type { LimitOfKey, Listed } from "../data.js";
import { ResetLimitDialog } from "./dialog.js";
import { Search } from "./filters.js";
import { type ViewProps, SharedContext, useAge } from "./hooks.js";
import { type Content, html } from "./html.js";
import { useList } from "./list.js";
import { bar, empty, Freshness, head, keyName, tryIt } from "./parts.js";
import { timeText } from "./words.js";

const FILTERS = { find: "", all: "" };

/** The view. */
export function LimitsView({ about, query, announce }: ViewProps): Content {
  const { filters, set, polled, age, partOf, more } = useList<Listed<LimitOfKey>, typeof FILTERS>("limits", about, query, FILTERS);
  const { isUtc } = useContext(SharedContext);
  const { data, atMs = 0, error } = polled;
  const { isKnown } = useAge(polled);
  const [resetting, setResetting] = useState<string>();
  const done = (news: string): void => {
    announce(news);
    polled.again();
  };
  return html`<main id="main" tabindex="-1">
    <h1 class="visually-hidden">Limits</h1>
    <${Search} label="Find a limit" value=${filters.find} onChange=${(find: string) => set({ find })}>
      <p class="count" role="status">${data && `${data.fits}${data.more ? " or more" : ""} in use`}</p>
    </${Search}>
    <${Freshness} polled=${polled} what="limits" />
    ${partOf("Searched", "limits")}
    ${data && (data.items.length > 0 ? table(data.items) : nothing())}
    ${!data && !error && html`<p class="loading">Reading the limits…</p>`}
    ${more("limits")}
    ${
      resetting !== undefined &&
      html`<${ResetLimitDialog} name=${resetting} isKnown=${isKnown} onClose=${() => setResetting(undefined)} onDone=${done} />`
    }
  </main>`;

  function table(items: readonly LimitOfKey[]): Content {
    return html`<table class=${`rows limits ${age}`}>
      ${head("Limit", "Left of each rate", "Full again")}
      <tbody>
        ${items.map(
          ({ key, parts, fullInMs, ...limit }) =>
            html`<tr key=${key}>
              <th scope="row">${keyName(key, parts)}</th>
              <td data-label="Left">${left(limit)}</td>
              <td data-label="Full again">
                ${timeText(atMs + fullInMs, isUtc)} <span class="muted">(in ${formatSeconds(fullInMs)})</span>
                ${about.canChange && html` <button type="button" class="danger quiet" aria-label=${`Reset ${key}`} disabled=${!isKnown} onClick=${() => setResetting(key)}>Reset…</button>`}
              </td>
            </tr>`,
        )}
      </tbody>
    </table>`;
  }

  function nothing(): Content {
    if (filters.find !== "" || data?.more === true) return empty("No limit that was read fits");
    return empty(
      "Every limit is full",
      "What a caller takes from appears here until it is full again.",
      tryIt(about, "limit demo --rate 5/1m -- date"),
    );
  }
}

/** Returns a line for each rate, with what can be taken at once of it. */
function left({ rates, remaining }: Pick<LimitOfKey, "rates" | "remaining">): Content {
  return rates.map(({ count, perMs, burst }, at) => {
    const units = remaining[at] ?? 0;
    return html`<span class="lease">
      <span>${count} in ${exactDuration(perMs)}</span>${bar(units / burst, "held")}
      <span class=${units > 0 ? "left" : "left some"}>${units} of ${burst}</span>
    </span>`;
  }) as Content;
}
