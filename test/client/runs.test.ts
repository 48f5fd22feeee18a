/** The conformance tests of runs, for every client. */
import { describeClients } from "./conformance.js";
import { describeRunBatches } from "./conforming-run-batches.js";
import { describeRunCallers } from "./conforming-run-callers.js";
import { describeRunEnds } from "./conforming-run-ends.js";
import { describeRunOperators } from "./conforming-run-operators.js";
import { describeRunTakeovers } from "./conforming-run-takeovers.js";
import { describeRunValues } from "./conforming-run-values.js";

describeClients(describeRunCallers, describeRunTakeovers, describeRunEnds, describeRunValues, describeRunBatches, describeRunOperators);
