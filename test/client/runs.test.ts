/** The conformance tests of runs, for every client. Takeovers in real time wait for leases: they are in the slow tier. */
import { IN_MEMORY } from "./backends.js";
import { describeClients, describeClientsOf } from "./conformance.js";
import { describeRunBatches } from "./conforming-run-batches.js";
import { describeRunCallers } from "./conforming-run-callers.js";
import { describeRunEnds } from "./conforming-run-ends.js";
import { describeRunOperators } from "./conforming-run-operators.js";
import { describeRunTakeovers } from "./conforming-run-takeovers.js";
import { describeRunValues } from "./conforming-run-values.js";

describeClients(describeRunCallers, describeRunEnds, describeRunValues, describeRunBatches, describeRunOperators);
describeClientsOf(IN_MEMORY, describeRunTakeovers);
