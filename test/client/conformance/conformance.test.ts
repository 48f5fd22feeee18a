/** The conformance tests of locks, for every client. */
import { BACKENDS, openBothWays } from "./backends.js";
import { describeClientsOf } from "./conformance.js";
import { describeAcquiring } from "./conforming-acquires.js";
import { describeHolding } from "./conforming-holds.js";
import { describeOthers } from "./conforming-others.js";

describeClientsOf(
  [...BACKENDS, ["by two ways, one of which loses answers", openBothWays]],
  describeAcquiring,
  describeHolding,
  describeOthers,
);
