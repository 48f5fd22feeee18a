// The occurrences of expressions that match by the minute alone, on the days when the clocks change, against Intl. Prints those that differ.
import { cron } from "holdfast/cron";

const MINUTE_MS = 60_000;
const CHANGES = {
  "Europe/Berlin": ["2027-03-28T01:00Z", "2027-10-31T01:00Z"],
  "America/New_York": ["2027-03-14T07:00Z", "2027-11-07T06:00Z"],
  "Australia/Lord_Howe": ["2027-04-03T15:00Z", "2027-10-02T15:30Z"],
  UTC: ["2027-03-28T01:00Z"],
};
const EXPRESSIONS = { "* * * * *": () => true, "*/30 * * * *": (minute) => minute % 30 === 0, "0 * * * *": (minute) => minute === 0 };

let checks = 0;
const wrong = [];
for (const [timeZone, changes] of Object.entries(CHANGES)) {
  const minutes = new Intl.DateTimeFormat("en", { timeZone, minute: "numeric" });
  for (const [expression, matches] of Object.entries(EXPRESSIONS)) {
    const schedule = cron(expression, { timeZone });
    for (const change of changes) {
      const beginMs = Date.parse(change) - 180 * MINUTE_MS;
      let last;
      for (let atMs = beginMs; atMs < beginMs + 360 * MINUTE_MS; atMs += MINUTE_MS) {
        if (matches(Number(minutes.format(atMs)))) last = atMs;
        if (last === undefined) continue;
        checks++;
        const found = schedule.last(new Date(atMs)).getTime();
        if (found !== last) wrong.push(`${timeZone} ${expression} at ${new Date(atMs).toISOString()}: ${new Date(found).toISOString()}`);
      }
    }
  }
}
const leap = cron("0 0 29 2 *");
const leapDays = [leap.last(new Date("2027-01-01T00:00Z")), leap.next(new Date("2027-01-01T00:00Z"))].map((day) => day?.toISOString());
console.log(JSON.stringify({ checks, wrong: wrong.slice(0, 3), wrongs: wrong.length, leapDays }));
