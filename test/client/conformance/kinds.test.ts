/** Every kind of lock with every client: scopes, readers and writers, semaphores, sets, and transfers of them. */
import { describeTogether } from "./conformance.js";
import { describeKindsConditions } from "./conforming-kinds-conditions.js";
import { describeKindsModes } from "./conforming-kinds-modes.js";
import { describeKindsLine } from "./conforming-kinds-local-queue.js";
import { describeKindsPermits } from "./conforming-kinds-permits.js";
import { describeKindsQueue } from "./conforming-kinds-queue.js";
import { describeKindsScopes } from "./conforming-kinds-scopes.js";
import { describeKindsSets } from "./conforming-kinds-sets.js";

describeTogether(
  describeKindsScopes,
  describeKindsModes,
  describeKindsPermits,
  describeKindsSets,
  describeKindsQueue,
  describeKindsLine,
  describeKindsConditions,
);
