/** The scenes that every client plays, one row each. */
import { LOCK_SCENES } from "./scenes-locks.js";
import { RUN_SCENES } from "./scenes-runs.js";
import { SET_SCENES } from "./scenes-sets.js";
import type { Scene } from "./scene.js";
import { WIRE_SCENES } from "./scenes-wire.js";

/** The commands that a client doesn't have, by the name of its driver, and why. */
const LACKS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  go: {
    run_once: "It is an example of locks alone.",
    take: "It is an example of locks alone.",
    acquire_all: "It is an example of locks alone.",
    extend: "It is an example of a lock that renews itself.",
    key: "It takes a key as it is.",
    in_child: "A process of Go doesn't fork.",
    in_thread: "A lock is an object of its own: who has it holds it.",
    progress: "It has no time without progress: its work sets a limit of its own.",
  },
  java: {
    run_once: "It has locks alone: ShedLock and the clients that people come from have no runs.",
    take: "It has locks alone: ShedLock and the clients that people come from have no limits.",
    acquire_all: "It has locks of one key alone, as ShedLock and the clients that people come from.",
    progress: "It has no time without progress: its work sets a limit of its own.",
  },
};

/** Returns the scene with the reasons of the clients that lack one of its commands. */
function withReasons(scene: Scene): Scene {
  const asked = scene.play.flatMap((step) => ("ask" in step ? [step.ask] : "begin" in step ? [step.begin] : []));
  const reasons = Object.entries(LACKS).flatMap(([name, lacks]) =>
    Object.entries(lacks).flatMap(([verb, reason]) => (asked.some((command) => command.startsWith(`${verb} `)) ? [[name, reason]] : [])),
  );
  return reasons.length === 0
    ? scene
    : { ...scene, cannot: { ...scene.cannot, ...(Object.fromEntries(reasons) as Record<string, string>) } };
}

export const SCENES: readonly Scene[] = [...LOCK_SCENES, ...RUN_SCENES, ...SET_SCENES, ...WIRE_SCENES].map(withReasons);
