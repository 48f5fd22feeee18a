/** The conformance tests of locks, for every client. */
import { describeClients } from "./conformance.js";
import { describeAcquiring } from "./conforming-acquires.js";
import { describeHolding } from "./conforming-holds.js";
import { describeOthers } from "./conforming-others.js";

describeClients(describeAcquiring, describeHolding, describeOthers);
