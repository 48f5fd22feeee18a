/** One key's leases as a picture, the holders above: each waits, holds and ends in a lane of its own. The present leases reach as far as they last. */
import { useContext, useRef } from "preact/hooks";
import { formatDuration } from "../text/duration.js";
import { holdEndText } from "../text/held-text.js";
import { plain } from "../text/plain-text.js";
import { type EndKind, type Lane, type Moment, arranged, beginning, ending } from "../lanes.js";
import { SharedContext, useNow, useWidth } from "./hooks.js";
import { type Content, html } from "./html.js";
import { type Tone, whenText } from "./words.js";

/** A lane with what only the page knows: how long its present lease lasts, and the renewals that it saw. */
export interface DrawnLane extends Lane {
  readonly lastsUntilMs?: number;
  /** The state of its present hold by the last answer, and since when it is not renewed in time, in epoch ms. */
  readonly tone?: Tone;
  readonly lateFromMs?: number | undefined;
  readonly renewedAtMs?: readonly number[];
}

const LANE_PX = 30;
const AXIS_PX = 26;
const LABEL_PX = 158;
/** The part of the width that shows the future, in which present leases end. */
const FUTURE = 0.14;
const LANES_MAX = 24;
/** The smallest distance of two labels of the axis, in px. */
const TICK_PX = 96;
const MINUTE_MS = 60_000;
const TICKS_MS = [
  1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000,
];

/** The colours of holds that their holders did not give up. */
const END_TONES: Partial<Record<EndKind, string>> = { expired: "lost", taken: "lost", broken: "broken" };

/** Where a time is drawn, in px. */
type PixelOf = (atMs: number) => number;

/** The times that a lane needs. */
interface Picture {
  readonly nowMs: number;
  /** The time up to which the lanes are known, in epoch ms. */
  readonly knownMs: number;
  readonly place: PixelOf;
  /** The time with which the picture begins, in epoch ms. */
  readonly fromMs: number;
  readonly isUtc: boolean;
}

/** The span of a picture that fits all its leases. */
export const FIT = 0;
/** The smallest time that such a picture shows, in ms: a lease of some ms is not the whole picture. */
const FIT_LEAST_MS = 1000;

/** The picture of the last `spanMs`, or of all leases. */
export function Timeline(props: {
  readonly lanes: readonly DrawnLane[];
  readonly spanMs: number;
  readonly name: string;
  /** The text of a picture without lanes. */
  readonly nothing: string;
  /** The time of the last answer, in epoch ms, if that is old. @default up to now all is known */
  readonly knownUntilMs?: number | undefined;
}): Content {
  const { lanes, spanMs, name, nothing, knownUntilMs = Infinity } = props;
  const { isUtc } = useContext(SharedContext);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const nowMs = useNow(spanMs <= 60_000 ? 200 : 1000);
  const isFit = spanMs === FIT;
  const inSpan = isFit ? lanes : lanes.filter((lane) => ending(lane) > nowMs - spanMs && beginning(lane) <= nowMs + 1000);
  const shown: readonly DrawnLane[] = arranged(inSpan, LANES_MAX);
  // A picture that fits ends with the last lease, or now if one goes on.
  const untilMs = isFit ? Math.min(nowMs, Math.max(...shown.map(ending))) : nowMs;
  const wholeMs = isFit ? Math.max(FIT_LEAST_MS, untilMs - Math.min(...shown.map(beginning))) : spanMs;
  const fromMs = untilMs - wholeMs;
  const notDrawn = inSpan.filter((lane) => ending(lane) !== Infinity && !shown.includes(lane)).length;
  const isNarrow = width < 560;
  const left = isNarrow ? 8 : LABEL_PX;
  const lanePx = isNarrow ? LANE_PX + 14 : LANE_PX;
  const wide = Math.max(0, width - left - 8);
  const place: PixelOf = (atMs) => left + wide * Math.min(1, Math.max(0, ((atMs - fromMs) / wholeMs) * (1 - FUTURE)));
  const height = AXIS_PX + Math.max(1, shown.length) * lanePx + 6;
  return html`<div class="timeline" ref=${box}>
    ${
      width > 0 &&
      html`<svg width=${width} height=${height} role="img" aria-label=${`${name}: ${shown.length} leases, as in the table below`}>
        <defs>
          <pattern id="waiting" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect class="hatch wait" width="2.5" height="6" />
          </pattern>
          <pattern id="unknown" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
            <rect class="hatch unknown" width="1.5" height="6" />
          </pattern>
          <pattern id="failed" width="5" height="5" patternUnits="userSpaceOnUse">
            <rect class="hatch failed" width="2.5" height="5" />
          </pattern>
        </defs>
        ${axis(ticksIn(fromMs, untilMs, (wide * (1 - FUTURE)) / TICK_PX), untilMs, height, { nowMs, place, isUtc })}
        ${shown.map((lane, at) => laneOf(lane, AXIS_PX + at * lanePx, lanePx, isNarrow, { nowMs, knownMs: Math.min(nowMs, knownUntilMs), place, fromMs, isUtc }))}
        ${
          untilMs === nowMs &&
          html`<line class="now" x1=${place(nowMs)} x2=${place(nowMs)} y1=${AXIS_PX - 8} y2=${height} />
            <text class="now-label" x=${place(nowMs)} y="12" text-anchor="middle">now</text>`
        }
        ${shown.length === 0 && html`<text class="nothing" x=${left + (wide * (1 - FUTURE)) / 2} y=${AXIS_PX + 20} text-anchor="middle">${nothing}</text>`}
      </svg>`
    }
    ${notDrawn > 0 && html`<p class="muted">${notDrawn} leases of this time are not drawn; the table has them.</p>`}
  </div>`;
}

/** Returns the times of the axis, in epoch ms: at most `fits` of them, and one at least. */
function ticksIn(fromMs: number, untilMs: number, fits: number): readonly number[] {
  const spanMs = untilMs - fromMs;
  const stepMs = TICKS_MS.find((ms) => spanMs / ms <= Math.max(1, Math.floor(fits))) ?? spanMs;
  const first = Math.ceil(fromMs / stepMs) * stepMs;
  return Array.from({ length: Math.max(0, Math.floor((untilMs - first) / stepMs) + 1) }, (_, at) => first + at * stepMs);
}

/** Times of other days than today have their date, for which those of whole minutes leave out the seconds. */
function axis(
  times: readonly number[],
  untilMs: number,
  height: number,
  { nowMs, place, isUtc }: Pick<Picture, "nowMs" | "place" | "isUtc">,
): Content {
  const areWholeMinutes = times.every((atMs) => atMs % MINUTE_MS === 0);
  return html`<g class="axis">
    ${times.map((atMs) => {
      const x = place(atMs);
      const isClear = x > 30 && place(untilMs) - x >= 44;
      const text = whenText(atMs, nowMs, isUtc);
      return html`<line
          x1=${x}
          x2=${x}
          y1=${AXIS_PX - 6}
          y2=${height}
        />${isClear && html`<text x=${x} y="12" text-anchor="middle">${areWholeMinutes ? text.slice(0, -":00".length) : text}</text>`}`;
    })}
  </g>`;
}

function laneOf(lane: DrawnLane, top: number, lanePx: number, isNarrow: boolean, picture: Picture): Content {
  const { knownMs, isUtc, place } = picture;
  const middle = top + lanePx - LANE_PX / 2;
  const label = plain(lane.owner) || "no name";
  // The end of a name tells it from others, as in `lambda/flash-sale/54`.
  const cut = label.length > 18 ? `…${label.slice(-17)}` : label;
  return html`<g class="lane" key=${lane.id}>
    <title>${describe(lane, knownMs, isUtc)}</title>
    <rect class="hit" x="0" y=${top} width="100%" height=${lanePx} />
    <text class="label" x=${isNarrow ? 8 : LABEL_PX - 10} y=${isNarrow ? top + 12 : middle + 4} text-anchor=${isNarrow ? "start" : "end"}
      >${cut}</text
    >
    ${unknownOf(lane, middle, picture)} ${waitOf(lane, middle, picture)} ${holdOf(lane, middle, picture)}
    ${lane.moments.map(({ kind, atMs }) => diamond(kind, place(atMs), middle))}
  </g>`;
}

function waitOf({ wait, hold, end }: DrawnLane, middle: number, { knownMs, place, fromMs }: Picture): Content | null {
  if (!wait) return null;
  const [x, x2] = [place(wait.fromMs), place(wait.toMs ?? knownMs)];
  const isOver = !hold && end !== undefined;
  return html`<g>
    <rect
      class="wait"
      x=${x}
      y=${middle - 4}
      width=${Math.max(2, x2 - x)}
      height="8"
      rx=${wait.fromMs < fromMs ? 0 : 2}
      fill="url(#waiting)"
    />
    ${wait.fromMs >= fromMs && html`<line class="wait" x1=${x} x2=${x} y1=${middle - 6} y2=${middle + 6} />`}
    ${isOver && cross(x2, middle, "wait")}
  </g>`;
}

function holdOf(lane: DrawnLane, middle: number, { nowMs, knownMs, place, fromMs }: Picture): Content | null {
  const { hold, end, hasFailed = false, lastsUntilMs, renewedAtMs = [], tone: toneNow = "held", lateFromMs } = lane;
  if (!hold) return null;
  const whole = end ? (END_TONES[end.kind] ?? (hasFailed ? "failed" : "held")) : toneNow;
  const [x, x2] = [place(hold.fromMs), place(hold.toMs ?? knownMs)];
  // What was in time stays so: the colour of a late hold begins when it became late.
  const isLate = !end && lateFromMs !== undefined && (toneNow === "late" || toneNow === "over");
  const lateX = isLate ? Math.max(x, place(lateFromMs)) : x2;
  const tone = isLate ? "held" : whole;
  const isOpen = hold.toMs === undefined && knownMs === nowMs;
  const fill = fillOf(tone);
  const until = isOpen && lastsUntilMs !== undefined ? place(Math.max(nowMs, lastsUntilMs)) : x2;
  return html`<g>
    ${until > x2 && html`<rect class="future" x=${x2} y=${middle - 7.5} width=${until - x2} height="15" rx="3" />`}
    <rect class=${`hold ${tone}`} x=${x} y=${middle - 8} width=${Math.max(3, x2 - x)} height="16" rx="3" fill=${fill} />
    ${hold.fromMs < fromMs && html`<rect class=${`hold cut ${tone}`} x=${x} y=${middle - 8} width=${Math.min(4, x2 - x)} height="16" fill=${fill} />`}
    ${isLate && html`<rect class="hold ${whole}" x=${lateX} y=${middle - 8} width=${Math.max(3, x2 - lateX)} height="16" rx="3" />`}
    ${renewedAtMs
      .map((atMs) => place(atMs))
      .filter((at) => at > x + 2 && at < x2)
      .map((at) => html`<line class="renewal" x1=${at} x2=${at} y1=${middle - 4} y2=${middle + 4} />`)}
    ${end && (tone === "lost" || tone === "broken") && cross(place(end.atMs), middle, tone)}
  </g>`;
}

/** Returns the hatch of a failed attempt, which no colour is needed to tell from a lost lease; undefined for what has a colour alone. */
function fillOf(tone: string): string | undefined {
  return tone === "failed" ? "url(#failed)" : undefined;
}

/** The time of a lane of which nothing is known: in which it ended, or since the last answer. */
function unknownOf(lane: DrawnLane, middle: number, { nowMs, knownMs, place }: Picture): Content | null {
  const { end } = lane;
  const goesOn = ending(lane) === Infinity && knownMs !== nowMs;
  if (end?.afterMs === undefined && !goesOn) return null;
  const [x, x2] = [place(end?.afterMs ?? knownMs), place(end?.atMs ?? nowMs)];
  return html`<rect class="unknown" x=${x} y=${middle - 8} width=${Math.max(2, x2 - x)} height="16" fill="url(#unknown)" />`;
}

/** A cross at the end of a hold that its holder did not give up. */
function cross(x: number, y: number, tone: string): Content {
  return html`<g
    ><circle class="end-back" cx=${x} cy=${y} r="8" /><path
      class=${`end ${tone}`}
      d=${`M${x - 4} ${y - 4}L${x + 4} ${y + 4}M${x + 4} ${y - 4}L${x - 4} ${y + 4}`}
  /></g>`;
}

function diamond(kind: Moment["kind"], x: number, y: number): Content {
  return html`<path class=${`moment ${kind}`} d=${`M${x} ${y - 6}L${x + 5} ${y}L${x} ${y + 6}L${x - 5} ${y}Z`} />`;
}

function describe({ owner, wait, hold, end, broken, hasFailed = false }: DrawnLane, nowMs: number, isUtc: boolean): string {
  const held = hold && `held ${end?.afterMs === undefined ? "" : "at least "}${formatDuration((hold.toMs ?? nowMs) - hold.fromMs)}`;
  const between =
    end?.afterMs === undefined ? "" : `; it ended between ${whenText(end.afterMs, nowMs, isUtc)} and ${whenText(end.atMs, nowMs, isUtc)}`;
  const parts = [
    plain(owner) || "no name",
    ...(wait ? [`waited ${formatDuration((wait.toMs ?? nowMs) - wait.fromMs)}`] : []),
    ...(held === undefined ? [] : [held + (hold?.toMs === undefined ? " so far" : "")]),
    ...(hold?.fencingToken === undefined ? [] : [`token ${hold.fencingToken}`]),
    ...(hold?.attempt === undefined ? [] : [`attempt ${hold.attempt}${hasFailed ? ", failed" : ""}`]),
    ...(end ? [holdEndText(end.kind, broken) + between] : []),
  ];
  return parts.join(", ");
}

/** The signs of the picture, as it draws them. */
export function legend(): Content {
  const box = (kind: string, fill?: string): Content => html`<rect class=${kind} x="1" y="1" width="18" height="10" rx="2" fill=${fill} />`;
  const signs: readonly (readonly [sign: Content | readonly Content[], text: string])[] = [
    [box("wait", "url(#waiting)"), "waits"],
    [box("hold held"), "holds"],
    [box("hold late"), "not renewed"],
    [box("future"), "lease left"],
    [[box("hold held"), html`<line class="renewal" x1="10" x2="10" y1="2" y2="10" />`], "renewed, since this page was opened"],
    [[box("hold lost"), cross(15, 6, "lost")], "lost: the lease ran out"],
    [[box("hold broken"), cross(15, 6, "broken")], "broken"],
    [box("hold failed", fillOf("failed")), "failed attempt"],
    [box("unknown", "url(#unknown)"), "not known"],
    [diamond("offered", 10, 6), "offered or changed"],
    [diamond("breaking", 10, 6), "break began"],
    [diamond("recorded", 10, 6), "outcome recorded"],
  ];
  return html`<ul class="legend" aria-hidden="true">
    ${signs.map(([sign, text]) => html`<li><svg width="20" height="12">${sign}</svg>${text}</li>`)}
  </ul>`;
}
