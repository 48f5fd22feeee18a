/** The scenes that every client plays, one row each. */
import { LOCK_SCENES } from "./scenes-locks.js";
import { RUN_SCENES } from "./scenes-runs.js";
import type { Scene } from "./scene.js";
import { WIRE_SCENES } from "./scenes-wire.js";

export const SCENES: readonly Scene[] = [...LOCK_SCENES, ...RUN_SCENES, ...WIRE_SCENES];
