/**
 * `npm run soak -- --minutes M`: 2,000 held leases with heartbeats and 200 contenders, then an engine that is away for
 * longer than a lease. Prints memory, times and rates, and exits 1 if a lease was lost while all was well, a holder was
 * told too late, a key did not recover, or the requests afterwards reached twice the healthy rate.
 */
import { parseArgs } from "node:util";
import { soak } from "./soak.js";

// This project supports Node 20. The SDK's warning that it will drop Node 20 doesn't help users of this program.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    leases: { type: "string", default: "2000" },
    contenders: { type: "string", default: "200" },
    leaseMs: { type: "string", default: "30000" },
  },
});
const [minutes, leases, contenders, leaseMs] = [values.minutes, values.leases, values.contenders, values.leaseMs].map(Number);
if (![minutes, leases, contenders, leaseMs].every((value) => value! > 0)) {
  console.error("soak: --minutes, --leases, --contenders and --leaseMs take numbers above 0");
  process.exit(2);
}

const report = await soak({ leases: leases!, contenders: contenders!, leaseMs: leaseMs!, healthyMs: minutes! * 60_000 });
const { healthy, memory, told, toldLate, recovered, recoveredMs, healthyRate, rateInOutage, ratesAfter, worstSecond } = report;
const sorted = healthy.acquiresMs.toSorted((a, b) => a - b);
const percentile = (share: number): string => `${(sorted[Math.ceil(share * sorted.length) - 1] ?? NaN).toFixed(1)} ms`;
const megabytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
console.log(`${leases} leases of ${leaseMs} ms and ${contenders} contenders for ${minutes} minutes`);
for (const { when, holderRss, holderHeap, serviceRss } of memory) {
  const [rss, heap] = [holderRss, holderHeap].map((both) => both.map(megabytes).join(" and "));
  console.log(`memory at the ${when}: holders ${rss} MB, of which heap ${heap} MB; service ${megabytes(serviceRss)} MB`);
}
console.log(`held at the end: ${healthy.held}; lost: ${healthy.lost}; acquires of contenders that failed: ${healthy.failed}`);
console.log(`${sorted.length} acquires of contenders: median ${percentile(0.5)}, p99 ${percentile(0.99)}`);
console.log(`engine away for longer than a lease: ${told} holders told of their loss, ${toldLate} of them too late`);
const recovery = recoveredMs === undefined ? "never" : `after ${(recoveredMs / 1000).toFixed(1)} s`;
console.log(`held again: ${recovered}, all of them ${recovery}`);
const after = ratesAfter.map((rate) => rate.toFixed(0)).join(", ");
console.log(`requests to the engine: ${healthyRate.toFixed(0)}/s before, ${rateInOutage.toFixed(0)}/s in the outage`);
console.log(`in the heartbeat intervals after it: ${after}/s`);
console.log(`in the worst second after: ${worstSecond.toFixed(0)}/s`);

const broken = [
  healthy.held === leases && healthy.lost === 0 ? "" : "a lease was lost while all was well",
  told === leases && toldLate === 0 ? "" : "a holder was not told in time",
  recovered === leases ? "" : "a key did not recover",
  Math.max(...ratesAfter) < 2 * healthyRate ? "" : "the requests afterwards reached twice the healthy rate",
].filter((what) => what !== "");
for (const what of broken) console.log(`BROKEN: ${what}`);
process.exitCode = broken.length > 0 ? 1 : 0;
