/** The conformance tests of locks, for every client. */
import { isThorough } from "../../support/tier.js";
import { openBothWays } from "./backends.js";
import { describeClients, describeClientsOf } from "./conformance.js";
import { describeAcquiring } from "./conforming-acquires.js";
import { describeHolding } from "./conforming-holds.js";
import { describeOthers } from "./conforming-others.js";

describeClients(describeAcquiring, describeHolding, describeOthers);
if (isThorough())
  describeClientsOf([["by two ways, one of which loses answers", openBothWays]], describeAcquiring, describeHolding, describeOthers);
