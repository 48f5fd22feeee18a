/** The conformance tests of the clients, for one that is traced: it does what the client does. */
import { type BACKENDS, IN_MEMORY } from "../client/conformance/backends.js";
import { describeClientsOf } from "../client/conformance/conformance.js";
import { describeAcquiring } from "../client/conformance/conforming-acquires.js";
import { describeHolding } from "../client/conformance/conforming-holds.js";
import { describeOthers } from "../client/conformance/conforming-others.js";
import { describeRunBatches } from "../client/conformance/conforming-run-batches.js";
import { describeRunCallers } from "../client/conformance/conforming-run-callers.js";
import { describeRunEnds } from "../client/conformance/conforming-run-ends.js";
import { describeRunTakeovers } from "../client/conformance/conforming-run-takeovers.js";
import { traced } from "../../lib/otel.js";

const TRACED: typeof BACKENDS = IN_MEMORY.map(([name, open]) => [
  `${name}, traced`,
  async () => {
    const backend = await open();
    return { ...backend, client: (options) => traced(backend.client(options)) };
  },
]);

describeClientsOf(
  TRACED,
  describeAcquiring,
  describeHolding,
  describeOthers,
  describeRunBatches,
  describeRunCallers,
  describeRunEnds,
  describeRunTakeovers,
);
