/** The conformance tests of limits. A lost answer charges a take twice, so no backend here loses any. */
import { describeClients } from "./conformance.js";
import { describeLimits } from "./conforming-limits.js";

describeClients(describeLimits);
