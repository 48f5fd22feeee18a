/** Lines of the log as tables, for people: all of them, and what operators did. */
import { useContext, useMemo, useState } from "preact/hooks";
import { endOf, factsOf, saying, wordOf } from "../text/held-text.js";
import { plain } from "../text/plain-text.js";
import { outcomeText } from "../text/run-text.js";
import { type Deed, type ToldLine, deedOf, isLoss, reasonOf, toldOnce } from "../activity.js";
import type { Line } from "../data.js";
import { serviceNowMs } from "./clock.js";
import { SharedContext } from "./hooks.js";
import { type Content, html } from "./html.js";
import { head, keyName, ownerName } from "./parts.js";
import { hrefOf } from "./route.js";
import { shortToken, whenText } from "./words.js";

function toneOf(line: Line): string {
  if (isLoss(line)) return (line.reason ?? "").startsWith("broken") ? "broken" : "over";
  const tones: Readonly<Partial<Record<Line["event"], string>>> = {
    granted: "held",
    refused: "late",
    breaking: "broken",
    reset: "broken",
    queued: "waiting",
    waiting: "waiting",
    offered: "waiting",
    skipped: "waiting",
  };
  return tones[line.event] ?? "free";
}

/** Returns the details of a line in words. */
export function detailsOf(line: Line): string {
  const { by, fencingToken, attempt, cost, repeated } = line;
  const { why, held } = endOf(line);
  // A break that frees a key gives its reason to the offer that follows.
  const reason = line.event === "offered" ? "" : why;
  const token = fencingToken === undefined ? "" : `token ${shortToken(fencingToken)}`;
  const facts = [
    reason,
    saying("by", by),
    outcomeText(line),
    saying("attempt", attempt),
    saying("cost", cost),
    ...factsOf(line),
    held,
    token,
    repeated ? "again" : "",
  ];
  return facts.filter((fact) => fact !== "").join(", ");
}

/** The number of lines at first, and with each further click. */
const ROWS = 40;

const SHOW_EARLIER = "Show earlier events";

/** The table, the latest line first, and what repeats once. The key is left out where all have the same. */
export function Events(props: { readonly lines: readonly Line[]; readonly withKey: boolean; readonly label: string }): Content {
  const { lines, withKey, label } = props;
  const { isUtc } = useContext(SharedContext);
  const [rows, setRows] = useState(ROWS);
  const told = useMemo(() => toldOnce(lines), [lines]);
  const whenOf = (atMs: number): string => whenText(atMs, serviceNowMs(), isUtc, true);
  const repeats = ({ times, firstAtMs }: ToldLine): string => (times > 1 ? `, ${times} times since ${whenOf(firstAtMs)}` : "");
  return html`<table class="rows events" aria-label=${label}>
      ${head("Time", "Event", ...(withKey ? ["Key"] : []), "Owner", "Details")}
      <tbody>
        ${told
          .slice(-rows)
          .toReversed()
          .map((one) => {
            const { line } = one;
            return html`<tr key=${line.seq}>
              <td class="time">${whenOf(line.atMs)}</td>
              <td><span class=${`event ${toneOf(line)}`}>${wordOf(line)}</span></td>
              ${withKey && html`<td class="of">${keyLink(line)}</td>`}
              <td class="wide">${ownerName(line.owner)}</td>
              <td class="details"><bdi>${plain(detailsOf(line))}${repeats(one)}</bdi></td>
            </tr>`;
          })}
      </tbody>
    </table>
    ${told.length > rows && html`<p class="more"><button type="button" onClick=${() => setRows(rows + 4 * ROWS)}>${SHOW_EARLIER}</button></p>`}`;
}

const DEEDS: Readonly<Record<Deed, string>> = { drain: "broken, to drain", force: "broken by force", reset: "reset" };
/** The number of deeds at first. */
const DEED_ROWS = 5;

/** The deeds of operators, the latest first: who broke or reset what, and why. */
export function Audit({ lines }: { readonly lines: readonly Line[] }): Content {
  const { isUtc } = useContext(SharedContext);
  const [isAll, setAll] = useState(false);
  const deeds = lines.filter((line) => deedOf(line)).toReversed();
  if (deeds.length === 0) return html`<p class="muted">Nobody broke a hold, or reset a run or a limit.</p>`;
  return html`<table class="rows events" aria-label="Breaks and resets">
      ${head("Time", "By", "Deed", "Key", "Held by", "Reason")}
      <tbody>
        ${deeds.slice(0, isAll ? deeds.length : DEED_ROWS).map(
          (line) =>
            html`<tr key=${line.seq}>
              <td class="time">${whenText(line.atMs, serviceNowMs(), isUtc, true)}</td>
              <td data-label="By">${ownerName(line.by)}</td>
              <td><span class="event broken">${DEEDS[deedOf(line) ?? "reset"]}</span></td>
              <td class="of">${keyLink(line)}</td>
              <td data-label="Held by">${line.kind === "run" ? html`<span class="muted">–</span>` : ownerName(line.owner)}</td>
              <td class="details"><bdi>${plain(reasonOf(line))}</bdi></td>
            </tr>`,
        )}
      </tbody>
    </table>
    ${!isAll && deeds.length > DEED_ROWS && html`<p class="more"><button type="button" onClick=${() => setAll(true)}>${SHOW_EARLIER}</button></p>`}`;
}

const PLACE_OF = { lock: "locks", run: "runs", limit: "limits" } as const;

function keyLink({ kind, key }: Line): Content {
  return html`<a href=${hrefOf(PLACE_OF[kind], key)}>${keyName(key)}</a>`;
}
