/** Clients with a mistake, as a text of one of their sources and what stands there instead. Each must fail the scenes of its row. */

/** One mistake of the client whose driver has this name. */
export interface Mistake {
  readonly client: "typescript" | "python" | "java";
  readonly file: string;
  readonly text: string;
  readonly mistaken: string;
  /** The names of the scenes that it fails. */
  readonly fails: readonly string[];
}

const REDIRECTS = [302, 303, 307, 308].map((status) => `a redirect (${status}) is not followed`);

/** Mistakes that the client in `examples/python` of commit 73eaab57 had not. */
const OF_THE_SDK: readonly Omit<Mistake, "client">[] = [
  {
    file: "lib/client/ask/fresh-id.ts",
    text: "aboveMs = answer.leaseIdAboveMs ?? aboveMs",
    mistaken: "aboveMs = aboveMs",
    fails: [5, 9.9].map((ahead) => `a key that was used by a caller whose clock is ${ahead} s ahead is granted`),
  },
  {
    file: "lib/client/ask/lease-ids.ts",
    text: "this.#correctionMs = serverTimeMs - this.#clock.wallMs()",
    mistaken: "void 0",
    fails: ["a caller whose own clock is 15 s ahead is granted"],
  },
  {
    file: "lib/client/wire/send.ts",
    text: "resolve({ status: response.statusCode",
    mistaken: `const to = get("location");
          if (to !== null) return void byNode(load)(to, { method, headers, body }, options).then(resolve, reject);
          resolve({ status: response.statusCode`,
    fails: [...REDIRECTS, "a redirect of a release is not followed"],
  },
  {
    file: "lib/client/hold/keep-alive.ts",
    text: "    this.checkLimits();\n",
    mistaken: "",
    fails: ["a lock whose work shows no progress is lost in time, says so, and is renewed no more"],
  },
  {
    file: "lib/client/hold/lease.ts",
    text: "this.keeper?.progress();",
    mistaken: "",
    fails: ["a lock whose work shows progress is kept"],
  },
];

const HOLD = "clients/java/src/main/java/holdfast/Hold.java";

/** A row at least for each property of which Java plays scenes. */
const OF_JAVA: readonly Omit<Mistake, "client">[] = [
  {
    file: HOLD,
    text: 'Math.min(answer.count("remainingMs"), leaseMs)',
    mistaken: 'answer.count("remainingMs")',
    fails: ["a lease is not longer than it can be, whatever the answer says"],
  },
  {
    file: HOLD,
    text: "    if (!isHeld()) throw loss();\n",
    mistaken: "",
    fails: ["a lease that was lost can't be made longer"],
  },
  {
    file: "clients/java/src/main/java/holdfast/Answer.java",
    text: 'key.equals(body.get("key")) && leaseId.equals(body.get("leaseId"))',
    mistaken: "true",
    fails: ["an acquire that meets an answer about another lease each time is refused, and its id is cancelled"],
  },
  {
    file: "clients/java/src/main/java/holdfast/Moment.java",
    text: "Math.max((nanos - earlier.nanos) / 1_000_000, wallMs - earlier.wallMs)",
    mistaken: "wallMs - earlier.wallMs",
    fails: ["a clock that is set back makes no lease longer"],
  },
  {
    file: HOLD,
    text: "if (problem.isLost()) isOver = true;",
    mistaken: "isOver = true;",
    fails: ["a lock goes on after a renewal that meets a gateway's 403", "a lock goes on after a renewal that meets a cut connection"],
  },
  {
    file: HOLD,
    text: "return lost.isDone() || (!isConcluded && leftMs() <= 0);",
    mistaken: "return false;",
    fails: ["a lock is lost in time, and says so, when every renewal meets a gateway's 403"],
  },
  {
    file: HOLD,
    text: "new Proof(answer.sent(), ",
    mistaken: "new Proof(requests.now(), ",
    fails: [
      "a lease whose grant came late is counted from its request",
      "a lease whose renewal was answered late is counted from its request",
    ],
  },
  {
    file: "clients/java/src/main/java/holdfast/Problem.java",
    text: "return again() || !byService;",
    mistaken: "return again();",
    fails: ["a release that meets a gateway's 403 is asked again"],
  },
  {
    file: HOLD,
    text: "cancel();\n        throw interrupted;",
    mistaken: "throw interrupted;",
    fails: ["a wait that is interrupted leaves no place in the queue"],
  },
  {
    file: HOLD,
    text: "answer = requests.again(request, forMs, Problem::again);",
    mistaken: `try {
          answer = requests.once(request, forMs);
        } catch (Problem problem) {
          if (!problem.again()) throw problem;
          id = newId(0);
          request = new Request("PUT", path(), body(leaseMs), waits, request.proves());
          continue;
        }`,
    fails: ["an acquire whose answer got lost is one lock"],
  },
  {
    file: HOLD,
    text: "boolean waits = waitMs > 0;",
    mistaken: "boolean waits = waitMs >= 1000;",
    fails: ["a wait of 0.4 s waits that long"],
  },
  {
    file: "clients/java/src/main/java/holdfast/Requests.java",
    text: "HttpClient.Redirect.NEVER",
    mistaken: "HttpClient.Redirect.ALWAYS",
    fails: REDIRECTS,
  },
  {
    file: "clients/java/src/main/java/holdfast/Key.java",
    text: '"~%02X"',
    mistaken: '"~%02x"',
    fails: ['the key of ["a_b~c","ä/"]'],
  },
];

/** A row at least for each property. The client for asyncio takes the same steps. */
const OF_PYTHON: readonly Omit<Mistake, "client" | "file">[] = [
  {
    text: 'and (is_last or problem.code != "lease-over")',
    mistaken: "",
    fails: ["a process that stood still past the end of its wait, and whose id is forgotten, is granted the free key"],
  },
  {
    text: "{one: tokens.get(one) for one in self.modes} if isinstance(tokens, dict) else {}",
    mistaken: "tokens if isinstance(tokens, dict) else {}",
    fails: ["a set is lost in time, and says so, when every renewal meets a set without the token of a key"],
  },
  {
    text: 'lasts = min(lease["remainingMs"], max(self.length, 1000))',
    mistaken: 'lasts = lease["remainingMs"]',
    fails: [
      "a set is not longer than it can be, whatever the answer says",
      "a lease is not longer than it can be, whatever the answer says",
    ],
  },
  {
    text: 'if problem.by_service and problem.code == "lease-lost":',
    mistaken: "if problem.definite:",
    fails: ["a set goes on after a renewal that meets a gateway's 403", "a lock goes on after a renewal that meets a gateway's 403"],
  },
  {
    text: "self._read(answer, sent)",
    mistaken: "self._read(answer, _now())",
    fails: ["a lease whose renewal was answered late is counted from its request"],
  },
  {
    text: 'answer.get("recorded") is True',
    mistaken: "True",
    fails: ["an outcome that meets another server's {} is recorded", "a release that meets another server's {} is asked again"],
  },
  {
    text: "if not isinstance(states, dict) or not all(one in states for one in self.modes):\n            return",
    mistaken: "if not isinstance(states, dict):\n            return 'released' or",
    fails: ["a release of a set that meets another server's {} is asked again"],
  },
  {
    text: "        finally:\n            _give_back(turns)\n",
    mistaken: "        finally:\n            pass\n",
    fails: ["a set that is blocked by one key holds none of the others meanwhile, and is granted when that is free"],
  },
  {
    text: "if isinstance(result, LATER):",
    mistaken: "if False:",
    fails: ["work that returns before it is done is refused, and is done by the next caller"],
  },
  {
    text: ', "sequence": next(self._sequence)}',
    mistaken: "}",
    fails: ["a checkpoint that arrives late undoes no later one"],
  },
  {
    text: "if not self.progress():\n            raise self._loss()",
    mistaken: "self.progress()",
    fails: ["a checkpoint after the loss is told as a loss, and isn't sent"],
  },
  {
    text: '{"key": name, "mode": mode}',
    mistaken: '{"key": name}',
    fails: ["a set of shared keys is held beside other readers"],
  },
  {
    text: '({"mode": "shared"} if shared else {})',
    mistaken: "{}",
    fails: ["a shared lock is held beside another shared one"],
  },
  {
    text: "self.path = self._path()\n",
    mistaken: "self.path = self._path() if above_ms or not hasattr(self, 'path') else self.path\n",
    fails: ["a caller whose own clock is 15 s ahead is granted"],
  },
  {
    text: "                definite = problem.definite = definite and problem.definite\n",
    mistaken:
      "                definite = problem.definite = definite and problem.definite\n                path = path[:-3] + secrets.token_hex(2)[:3] if method == 'PUT' and 'outcome' not in path else path\n",
    fails: ["an acquire whose answer got lost is one lock", "a set whose answer got lost is one set"],
  },
  {
    text: 'said = said.replace(secret, "…") if len(secret) >= 8 else said',
    mistaken: "pass",
    fails: ["a token that a gateway quotes is not in the error"],
  },
  {
    text: "sorted(value, key=_place)",
    mistaken: "sorted(value)",
    fails: ['the fingerprint of {"9":2,"10":1,"01":4,"a":3}'],
  },
  {
    text: "if self._over or self.is_of_parent() or self._is_silent():",
    mistaken: "if self._over or self._is_silent():",
    fails: ["a lock isn't held in a child process, and isn't released by it"],
  },
  {
    text: "if self._over or self.is_of_parent() or self._is_silent():",
    mistaken: "if self._over or self.is_of_parent():",
    fails: ["a lock whose work shows no progress is lost in time, says so, and is renewed no more"],
  },
  {
    text: "        self._progressed = _now()\n        return True",
    mistaken: "        return True",
    fails: ["a lock whose work shows progress is kept"],
  },
];

export const MISTAKES: readonly Mistake[] = [
  ...OF_THE_SDK.map((mistake) => ({ client: "typescript", ...mistake }) as const),
  ...OF_PYTHON.map((mistake) => ({ client: "python", file: "clients/python/holdfast/__init__.py", ...mistake }) as const),
  ...OF_JAVA.map((mistake) => ({ client: "java", ...mistake }) as const),
];
