/** The conformance tests of runs, for every client. Takeovers in real time wait for leases: they are in the slow tier. */
import { IN_MEMORY } from "../conformance/backends.js";
import { describeClients, describeClientsOf } from "../conformance/conformance.js";
import { describeRunBatches } from "../conformance/conforming-run-batches.js";
import { describeRunCallers } from "../conformance/conforming-run-callers.js";
import { describeRunEnds } from "../conformance/conforming-run-ends.js";
import { describeRunOperators } from "../conformance/conforming-run-operators.js";
import { describeRunTakeovers } from "../conformance/conforming-run-takeovers.js";
import { describeRunValues } from "../conformance/conforming-run-values.js";

describeClients(describeRunCallers, describeRunEnds, describeRunValues, describeRunOperators);
// A batch makes runs, and sends nothing of its own.
describeClientsOf(IN_MEMORY, describeRunBatches, describeRunTakeovers);
