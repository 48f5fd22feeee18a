/** The conformance with everybody there: a second principal, and one of another namespace, which `npm start` doesn't have. */
import { conformance } from "./conformance.js";
import { twoAccounts } from "./two-accounts.js";

conformance("the handler, in memory", twoAccounts);
