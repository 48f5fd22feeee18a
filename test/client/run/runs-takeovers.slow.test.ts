/** The conformance tests of runs that are taken over, for the clients whose time is real. */
import { IN_REAL_TIME } from "../conformance/backends.js";
import { describeClientsOf } from "../conformance/conformance.js";
import { describeRunTakeovers } from "../conformance/conforming-run-takeovers.js";

describeClientsOf(IN_REAL_TIME, describeRunTakeovers);
