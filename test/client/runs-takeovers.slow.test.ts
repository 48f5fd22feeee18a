/** The conformance tests of runs that are taken over, for the clients whose time is real. */
import { IN_REAL_TIME } from "./backends.js";
import { describeClientsOf } from "./conformance.js";
import { describeRunTakeovers } from "./conforming-run-takeovers.js";

describeClientsOf(IN_REAL_TIME, describeRunTakeovers);
