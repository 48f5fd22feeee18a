/** The conformance tests with all principals: a second one, and one of another namespace, which `npm start` doesn't have. */
import { conformance } from "./conformance.js";
import { twoAccounts } from "./two-accounts.js";

conformance("the handler, in memory", () => twoAccounts());
