/*
 * A model of one exclusive key: leases, the queue and its offers, late duplicates, and two server clocks for each request.
 * README.md lists what is left out, and names the file of lib/ behind each rule. main.ts runs this file as it is, and once
 * for each deliberate mistake, which is an #ifdef below.
 *
 * Time. All times are relative to now, so a tick lowers each of them by one. A time stops where no rule can tell it from an
 * earlier one. So the state space is finite, although the time is not bounded.
 *
 * Writes. A request reads both clocks, and its write lands up to STALL ticks later. It is decided on the record on which it
 * lands: a form's condition is evaluated there, and a compare-and-set succeeds only if the record is still the one seen.
 *
 * Network. A request that was sent may land any number of times, at any later time, or never. Only the answer to the present
 * attempt reaches its client, as late as it likes.
 *
 * Sleepers. With SLEEPER, the first leaseId waits asleep: two agents claim the key for it and tell its target, step by step. Each of them may
 * freeze or end between two steps.
 */
#ifdef SLEEPER
#define LEASES 2
#define STALL  0
#define ASLEEP 1   /* the leaseId that sleeps */
#define AGENTS 2
#else
#define ASLEEP 255
#endif
#ifndef LEASES
#define LEASES 3   /* leaseIds 1 to LEASES. Each is one attempt of a client to hold the key; the order is that of the ids */
#endif
#define NONE 0

/* Lengths in ticks, as small as the relations between them allow (lib/core/limits.ts). */
#define E      1                     /* A1: one of the two clocks of a request is this close to true time */
#define FAR    2                     /* the other clock may be this far off; still within the clock guard */
#define DRIFT  1                     /* A2: a client's slow clock extends its deadline by this much over a lease */
#define LEASE  3
#define OFFER  2                     /* an unclaimed offer lapses after this time */
#define TTL    3                     /* a waiter keeps its place for this long after it was last seen */
#ifndef STALL
#define STALL  2                     /* a write lands this much after its clocks were read, at the latest */
#endif
#define SWEEP  1                     /* an agent sweeps this often */
#define SLEEP  4                     /* a sleeper's own time */
#define VERDICT 0                    /* the agent that claimed takes "nobody waits" for a death this long */
#define OTHERS (VERDICT + 2 * E + STALL + 1)    /* the others leave a granted sleeper to it for this long */
#ifdef OFFER_LAPSES_AS_A_POLLERS
#define WAKE   OFFER
#else
#define WAKE   (2 * SWEEP + 2 * E + STALL)      /* an offer to a sleeper lapses after this time */
#endif
#define HEALED (FAR + LEASE + MARGIN + E + 1)   /* L1: the rest of the lease, the margin and one poll */

#if defined(MARGIN_OF_E)
#define MARGIN E
#elif defined(MARGIN_WITHOUT_DRIFT)
#define MARGIN (2 * E)
#elif defined(NO_MARGIN)
#define MARGIN 0
#else
#define MARGIN (2 * E + DRIFT)
#endif

/* ---- the record (lib/core/record.ts) ---- */
byte  hold = NONE;                   /* the leaseId that holds, also after its expiry until it is taken over */
short expires;
byte  token;
byte  offer = NONE;                  /* the leaseId that the key is offered to */
short offered;                       /* the time of the offer */
byte  queue[LEASES];                 /* waiters, the first in front; NONE behind the last */
short alive[LEASES];                 /* the time until which each of them keeps its place */
byte  tombstone = NONE;              /* one tombstone, where the record has eight */
byte  lowWatermark = NONE;

/* ---- the clients, by leaseId (lib/client) ---- */
#define IDLE   0                     /* not begun */
#define ASKING 1
#define HELD   2                     /* treats the lease as held while `believes` is positive */
#define ENDED  3                     /* stopped, or sent a release or cancel; a crashed client takes no more steps in any phase */
byte  phase[LEASES + 1];
short believes[LEASES + 1];          /* the time until its deadline */
short coming[LEASES + 1];            /* an answer on its way says held: the time until the deadline that it brings; 0: none */

/* ---- what the properties need, and no rule reads ---- */
bool  ended[LEASES + 1];             /* S7 */
byte  lastToken;                     /* S3 */
bool  healed;                        /* the faults are over; only the last leaseId still asks */
byte  healedFor;
byte  kept;                          /* L8: how long the sleeper has had its place or its offer */

#ifdef SLEEPER
short granted;                       /* the time of the sleeper's grant */
bool  item;                          /* the sleeper's item. It is written with the place, and the target waits while phase[ASLEEP] is ASKING */
/* ---- the agents, by number (lib/service/agent.ts) ---- */
#define RESTS     0
#define CLAIMS    1                  /* has read the record, and applies the sleeper's acquire */
#define ENDS      2                  /* has read that the sleeper's time is over */
#define TELLS     3                  /* tells the target that it has the key */
#define TELLSLOST 4                  /* tells the target that it never will */
#define RELEASES  5                  /* found nobody there, and releases the lease */
byte  agent[AGENTS];
bool  sawHeld[AGENTS];               /* it read that the sleeper holds */
bool  claimed[AGENTS];               /* its own acquire was granted */
byte  elapsed[AGENTS];               /* the time since then */
#endif

#ifdef UNCONDITIONAL_WRITE
bool  sawFree[LEASES + 1];
#endif

/* ---- one step's own variables, all 0 between steps ---- */
short earliest; short latest;        /* the clock interval of the request that lands */
byte  stall;                         /* the ticks since it was read */
byte  mayWait;                       /* an acquire may queue */
byte  skewed;                        /* the clocks are further apart than the guard */
short remaining;                     /* what the answer says; 0 if it doesn't say held */
byte  n; byte at; byte place; byte first; byte other; byte isUp; byte taken; byte drops;

inline done() {
  earliest = 0; latest = 0; stall = 0; mayWait = 0; skewed = 0; remaining = 0;
  n = 0; at = 0; place = 0; first = 0; other = 0; isUp = 0; taken = 0; drops = 0
}

/* Situations that must occur, or a run without an error means nothing: main.ts searches for each by its number. */
#ifndef FIND
#define FIND 0
#endif
#define occurs(number) if :: FIND == number -> assert(false) :: else fi

/* Reads both clocks of a request. One of them is within E of the true time. */
inline readClocks() {
  if :: stall = 0 :: stall = STALL fi;
#ifdef SINGLE_CLOCK
  if :: earliest = -FAR :: earliest = -E :: earliest = E :: earliest = FAR fi;
  latest = earliest;
#else
  if
  :: earliest = -E;   latest = -E
  :: earliest = E;    latest = E
  :: earliest = -E;   latest = E
  :: earliest = -FAR; latest = -E
  :: earliest = -FAR; latest = E
  :: earliest = -E;   latest = FAR
  :: earliest = E;    latest = FAR
  fi;
#endif
  earliest = earliest - stall; latest = latest - stall
}

/* ---- lib/core/lock/expiry.ts: each by the clock whose error is safe ---- */
#define isLive             (expires > earliest)
#ifdef TAKEOVER_BY_THE_LATER_CLOCK
#define isReclaimable      (expires + MARGIN <= latest)
#else
#define isReclaimable      (expires + MARGIN <= earliest)
#endif
#ifdef OFFER_NEVER_LAPSES
#define isLapsed           (false)
#else
#define isLapsed           (offered + (offer == ASLEEP -> WAKE : OFFER) <= earliest)
#endif
#define isWaiting(k)       (alive[k] > earliest)

/* ---- lib/core/lock/tombstones.ts ---- */
#define isOver(id)         (tombstone == id || id <= lowWatermark)

inline bury(id) {
  ended[id] = true;
#ifdef TOKEN_LOST_AT_THE_END
  token = 0;
#endif
#ifndef NO_TOMBSTONES
#ifndef NO_LOW_WATERMARK
  if :: tombstone > lowWatermark -> lowWatermark = tombstone :: else fi;
#endif
  tombstone = id;
#endif
}

/* ---- lib/core/lock/grant.ts, views.ts ---- */
inline tellLease() {
#if defined(LEASE_MS_FOR_REMAINING_MS)
  remaining = LEASE;
#elif defined(REMAINING_BY_THE_EARLIER_CLOCK)
  remaining = expires - earliest;
#else
  remaining = expires - latest;
#endif
  if :: remaining > LEASE -> remaining = LEASE :: else fi;
}

inline grant(id) {
#ifdef SLEEPER
  if :: id == ASLEEP -> granted = latest :: else fi;
#endif
  for (other : 1 .. LEASES) {
    if
    :: other != id && believes[other] > 0 -> printf("S9: %d is granted the key while %d treats it as held\n", id, other); assert(false)
    :: else
    fi
  }
  if :: ended[id] -> printf("S7: %d is granted again after its end\n", id); assert(false) :: else fi;
  token++;   /* max(token + 1, latest) in lib; the clock matters only after an item was collected */
  if :: token <= lastToken -> printf("S3: token %d after %d\n", token, lastToken); assert(false) :: else fi;
  lastToken = token; if :: token == LEASES -> occurs(7) :: else fi;
  printf("%d is granted the key with token %d\n", id, token);
  hold = id; expires = latest + LEASE;
  tellLease();
}

/* ---- lib/core/lock/queue.ts ---- */
inline removeAt(k) {
  n = k;
  do
  :: n < LEASES - 1 -> queue[n] = queue[n + 1]; alive[n] = alive[n + 1]; n++
  :: else -> queue[LEASES - 1] = NONE; alive[LEASES - 1] = 0; break
  od
}

inline restart(id) {
  if :: id == ASLEEP -> kept = 0 :: else fi
}

inline findPlace(id) {
  place = 0;
  do :: place < LEASES && queue[place] != id -> place++ :: else -> break od
}

/* L8: a sleeper keeps its place for its own time, and an offer for two sweeps. */
inline keeps(id, least) {
  if
  :: id == ASLEEP && kept < least -> printf("L8: the sleeper lost its place or its offer after %d\n", kept); assert(false)
  :: else
  fi
}

/* A sleeper's deadline is its own, so it counts as seen until then. */
#define lastSeen(k) (queue[k] == ASLEEP -> alive[k] : alive[k] - TTL)

/* Advances the queue: takes over, drops dead waiters, withdraws a lapsed offer, offers the key. `asking` needs no offer. */
inline advance(asking, isNew) {
  isUp = false;
  if :: hold != NONE && isReclaimable -> printf("%d is taken over\n", hold); bury(hold); hold = NONE; expires = 0; occurs(4) :: else fi;

  first = 0;   /* the first live waiter */
  do :: first < LEASES && queue[first] != NONE && !isWaiting(first) -> first++ :: else -> break od;
  drops = isNew || (queue[0] != NONE && !isWaiting(0) && (asking == NONE || (first < LEASES && queue[first] == asking)));
  at = 0;
  do
  :: at < LEASES && queue[at] != NONE && drops && !isWaiting(at) -> keeps(queue[at], SLEEP - 2 * E - STALL); removeAt(at)
  :: at < LEASES && queue[at] != NONE && !(drops && !isWaiting(at)) -> at++
  :: else -> break
  od;

  taken = hold != NONE;
  if
  :: offer != NONE && isLapsed ->
     printf("the offer to %d is withdrawn\n", offer); keeps(offer, 2 * SWEEP); occurs(5);
     at = 0;   /* removes all waiters ahead of the caller that were not seen since the offer */
     do
     :: at >= LEASES || queue[at] == NONE || queue[at] == asking -> break
     :: else -> if :: lastSeen(at) < offered -> keeps(queue[at], SLEEP - 2 * E - STALL); removeAt(at) :: else -> at++ fi
     od;
#ifndef CLAIMED_AFTER_WITHDRAWAL
     offer = NONE; offered = 0
#endif
#ifndef OFFERED_KEY_TO_A_NEWCOMER
  :: offer != NONE && !isLapsed -> taken = true
#endif
  :: else
  fi;

  do
  :: taken || queue[0] == NONE -> break
  :: else ->
     if
     :: queue[0] == asking -> isUp = true; taken = true
     :: queue[0] != asking && isWaiting(0) -> offer = queue[0]; offered = latest; taken = true; restart(offer); printf("%d is offered the key\n", offer); occurs(6)
     :: else
     fi;
     removeAt(0)
  od
}

inline advanceIfQueued() {
  if :: queue[0] != NONE && !skewed -> advance(NONE, false) :: else fi
}

/* Landings that change neither the record nor a client are left out. */
#define isWaiter(id)       (queue[0] == id || queue[1] == id || queue[LEASES - 1] == id)
#define acquireMatters(id) (phase[id] == ASKING || (hold != id && (offer == id || isWaiter(id) || !isOver(id))))
#if defined(RENEWAL_WITHOUT_ITS_HOLD)
#define renewMatters(id)   (true)
#else
#define renewMatters(id)   (hold == id)
#endif
#if defined(RELEASE_WITHOUT_OWNER_CHECK)
#define releaseMatters(id) (true)
#else
#define releaseMatters(id) (hold == id || offer == id || isWaiter(id) || !isOver(id))
#endif

/* ---- lib/core/lock/acquire.ts, with the numbers of its rules ---- */
inline acquire(id) {
  findPlace(id);
  if
  :: hold == id && isLive -> tellLease(); occurs(1)                      /* 1: the same lease, replayed */
  :: hold == id && !isLive -> remaining = 0
  :: hold != id && offer == id -> offer = NONE; offered = 0; grant(id); occurs(2)   /* 5: claimed */
  :: hold != id && offer != id && place < LEASES ->                      /* a poll of a waiter */
     if :: id != ASLEEP -> alive[place] = latest + TTL :: else fi;
     advance(id, false);
     if :: isUp -> grant(id) :: else -> remaining = 0 fi
  :: hold != id && offer != id && place == LEASES && isOver(id) ->                    /* 2: lease-over */
     remaining = 0; if :: tombstone != id -> occurs(3) :: else fi
  :: else ->
     place = 0;
     do :: queue[place] != NONE -> place++ :: else -> break od;
     queue[place] = id; alive[place] = latest + TTL;
     advance(id, true);
     findPlace(id);
     if
     :: isUp -> grant(id)                                                /* 6: first, and the key is free */
     :: !isUp && mayWait -> remaining = 0                           /* 8: queued */
     :: else -> removeAt(place); remaining = 0                        /* 9: locked */
     fi
  fi
}

/* ---- lib/core/lock/renew.ts ---- */
inline renew(id) {
#ifdef RENEWAL_WITHOUT_ITS_HOLD
  if :: hold != id -> hold = id; expires = latest + LEASE :: else fi;
#endif
  if
  :: hold == id && isLive ->
#ifdef RENEWAL_THAT_SHORTENS
     expires = latest + LEASE;
#else
     if :: latest + LEASE > expires -> expires = latest + LEASE :: else fi;
#endif
     if :: queue[0] != NONE && !isWaiting(0) -> advance(NONE, false) :: else fi;
     tellLease()
  :: else -> remaining = 0
  fi
}

/* ---- lib/store/dynamo/ending.ts: a write that no other can refuse leaves the queue to its next poll ---- */
inline advanceOrLeave() {
  if :: advanceIfQueued() :: true fi
}

/* ---- lib/core/lock/release.ts: a release, or the cancel of an acquire ---- */
inline release(id) {
  findPlace(id);
  if
#ifdef RELEASE_WITHOUT_OWNER_CHECK
  :: hold != NONE -> bury(hold); hold = NONE; expires = 0; advanceIfQueued()
#else
  :: hold == id -> bury(id); hold = NONE; expires = 0; advanceOrLeave(); occurs(8)
#endif
  :: else ->
     if
     :: offer == id -> bury(id); offer = NONE; offered = 0; advanceIfQueued()
#ifdef LEFT_PLACE_READ_AS_A_WAITER
     :: offer != id && place < LEASES -> bury(id)
#else
     :: offer != id && place < LEASES -> bury(id); removeAt(place); advanceOrLeave()
#endif
     :: offer != id && place == LEASES && !isOver(id) -> bury(id)
     :: else
     fi
  fi
}

/* ---- lib/client/ask/deadline.ts: the deadline counts from the sending of the request ---- */
inline answerTo(id) {
#ifdef DEADLINE_FROM_RECEIPT
  coming[id] = remaining + DRIFT;
#else
  coming[id] = remaining - stall + DRIFT;
#endif
  if :: remaining <= 0 || coming[id] < 0 -> coming[id] = 0 :: else fi
}

inline believe(id) {
  phase[id] = HELD; believes[id] = coming[id]; coming[id] = 0;
  for (other : 1 .. LEASES) {
    if
    :: other != id && believes[other] > 0 -> printf("S1: %d and %d both treat the key as held\n", id, other); assert(false)
    :: else
    fi
  }
}

inline stop(id) {
  phase[id] = ENDED; coming[id] = 0;
#ifndef RELEASE_BEFORE_BELIEF_ENDS
  believes[id] = 0;
#endif
}

/* A sleeper that was told treats the lease as held only after it renewed it. */
#define isHolder(id)       (phase[id] == HELD && (believes[id] > 0 || id == ASLEEP))

#ifdef SLEEPER
/* ---- lib/core/lock/acquire.ts, of a request to sleep: it is queued or offered the key, and never granted it ---- */
#define sleepMatters(id)   (hold != id && offer != id && (isWaiter(id) || !isOver(id)))
#ifdef ASLEEP_AND_GRANTED
#define ASKS(id) id
#else
#define ASKS(id) NONE
#endif
#ifdef SLEEPER_SEEN_AS_A_POLLER
#define DEADLINE TTL
#else
#define DEADLINE SLEEP
#endif

inline sleep(id) {
  if :: phase[id] == ASKING -> item = true :: else fi;
  findPlace(id);
  if
  :: place < LEASES -> advance(ASKS(id), false)
  :: else ->
     place = 0;
     do :: queue[place] != NONE -> place++ :: else -> break od;
     queue[place] = id; alive[place] = latest + DEADLINE; restart(id);
     advance(ASKS(id), true)
  fi;
  if :: isUp -> printf("S18: a request to sleep is granted the key, which nobody tells it\n"); assert(false) :: else fi
}

/* ---- lib/service/agent.ts, with the numbers of its rules ---- */
#define isInRecord(id)     (hold == id || offer == id || isWaiter(id))

inline look(a) {
  findPlace(ASLEEP);
  if
  :: !isInRecord(ASLEEP) -> agent[a] = TELLSLOST                                        /* 1 */
  :: place < LEASES && !isWaiting(place) -> agent[a] = ENDS
#ifndef TOLD_BESIDE_WHO_CLAIMED
  :: hold == ASLEEP && granted + OTHERS > earliest -> skip                              /* 2 */
  :: hold == ASLEEP && granted + OTHERS <= earliest -> agent[a] = CLAIMS; sawHeld[a] = true
#else
  :: hold == ASLEEP -> agent[a] = CLAIMS; sawHeld[a] = true
#endif
  :: offer == ASLEEP || place < LEASES && isWaiting(place) -> agent[a] = CLAIMS
  fi
}

inline claim(a) {
  mayWait = false;
  if
  :: hold == ASLEEP ->
     if
     :: !isLive -> agent[a] = TELLSLOST
     :: isLive && sawHeld[a] -> agent[a] = TELLS
     :: else -> rest(a)                                    /* another agent claimed the key since the record was read */
     fi
  :: hold != ASLEEP && !isInRecord(ASLEEP) && isOver(ASLEEP) -> agent[a] = TELLSLOST
  :: else ->
     acquire(ASLEEP);
     if
     :: hold == ASLEEP -> agent[a] = TELLS; claimed[a] = true; elapsed[a] = 0; sawHeld[a] = false
     :: else -> rest(a)                                                                  /* 3 */
     fi
  fi
}

/* The target takes one answer, while it waits. */
inline tell(a) {
#ifdef DELETED_BEFORE_IT_IS_TOLD
  if :: arrives == 0 -> item = false :: else fi;
#endif
  if
  :: arrives == 0 -> rest(a)                                /* throttled */
  :: arrives > 0 && phase[ASLEEP] == ASKING ->              /* 4; or the answer is lost */
     if
     :: agent[a] == TELLS -> printf("the sleeper is told\n"); phase[ASLEEP] = HELD; occurs(10)
     :: else -> printf("the sleeper is told that it lost its place\n"); phase[ASLEEP] = ENDED; occurs(11)
     fi;
     if :: arrives == 2 -> item = false :: else fi;
     rest(a)
  :: arrives == 1 && phase[ASLEEP] != ASKING -> rest(a)
  :: arrives == 2 && phase[ASLEEP] != ASKING ->             /* 5: nobody waits there */
     if
#ifdef GONE_BELIEVED_BY_ALL
     :: agent[a] == TELLS -> agent[a] = RELEASES
#else
     :: agent[a] == TELLS && claimed[a] && elapsed[a] <= VERDICT -> agent[a] = RELEASES; occurs(12)
#endif
     :: else -> if :: phase[ASLEEP] == HELD -> occurs(13) :: else fi; item = false; rest(a)
     fi
  fi;
  if
  :: !item && phase[ASLEEP] == ASKING && agent[0] == RESTS && agent[AGENTS - 1] == RESTS ->
     printf("L8: nobody will tell the sleeper\n"); assert(false)
  :: else
  fi
}

/* S18: an agent never ends the lease of a holder that was told. */
inline endLease() {
  if
  :: hold == ASLEEP && phase[ASLEEP] == HELD -> printf("S18: an agent ends the lease of a sleeper that was told\n"); assert(false)
  :: else
  fi;
  release(ASLEEP)
}

inline endWait(a) {
  findPlace(ASLEEP);
  if
  :: agent[a] == RELEASES -> endLease(); item = false; rest(a)
#ifndef ENDED_WHATEVER_IT_HOLDS
  :: agent[a] == ENDS && hold == ASLEEP -> occurs(14); rest(a)      /* granted the key since its record was read */
#endif
  :: agent[a] == ENDS && !isInRecord(ASLEEP) && isOver(ASLEEP) -> rest(a)
  :: else -> endLease(); agent[a] = TELLSLOST
  fi
}

inline rest(a) {
  agent[a] = RESTS; sawHeld[a] = false; claimed[a] = false; elapsed[a] = 0
}

proctype agents(byte a) {
  byte arrives;
end:
  do
  :: atomic { !healed && item && agent[a] == RESTS -> readClocks();
       d_step { printf("agent %d looks; clocks %d to %d\n", a, earliest, latest); look(a); done() } }
  :: atomic { !healed && agent[a] == CLAIMS -> readClocks();
       d_step { printf("acquire by agent %d lands; clocks %d to %d\n", a, earliest, latest); claim(a); done() } }
  :: atomic { !healed && (agent[a] == TELLS || agent[a] == TELLSLOST) ->
       if :: arrives = 0 :: arrives = 1 :: arrives = 2 fi;
       d_step { printf("agent %d tells; arrives: %d\n", a, arrives); tell(a); arrives = 0; done() } }
  :: atomic { !healed && (agent[a] == RELEASES || agent[a] == ENDS) -> readClocks();
       d_step { printf("release by agent %d lands; clocks %d to %d\n", a, earliest, latest); endWait(a); done() } }
  :: d_step { !healed && agent[a] != RESTS -> printf("agent %d ends\n", a); rest(a) }
  od
}
#endif

/* A leaseId: the steps of its client, and the landings of its requests, with and without an answer that reaches the client. */
proctype lease(byte id) {
end:
  do
  :: d_step { !healed && phase[id] == IDLE -> phase[id] = ASKING; printf("%d begins to ask\n", id) }
  :: d_step { !healed && (phase[id] == ASKING || isHolder(id)) && coming[id] > 0 ->
       printf("%d learns that it holds, for %d\n", id, coming[id]);
       believe(id); done() }
  :: d_step { !healed && (phase[id] == ASKING || phase[id] == HELD) -> printf("%d stops, and ends its lease\n", id); stop(id) }

  :: atomic { !healed && id != ASLEEP && phase[id] != IDLE && acquireMatters(id) -> readClocks();
       if :: mayWait = true :: mayWait = false fi;
       d_step {
         printf("acquire of %d lands; clocks %d to %d, stalled for %d, may wait: %d\n", id, earliest, latest, stall, mayWait);
         acquire(id);
         if :: phase[id] == ASKING -> answerTo(id) :: else fi;
         done() } }
  :: atomic { !healed && phase[id] >= HELD && renewMatters(id) -> readClocks();
       d_step {
         printf("renewal of %d lands; clocks %d to %d, stalled for %d\n", id, earliest, latest, stall);
         renew(id);
         if :: isHolder(id) -> answerTo(id) :: else fi;
         done() } }
  :: atomic { !healed && phase[id] == ENDED && releaseMatters(id) -> readClocks();
       if :: skewed = false :: skewed = true fi;
       d_step {
         printf("release of %d lands; clocks %d to %d, stalled for %d, beyond the guard: %d\n", id, earliest, latest, stall, skewed);
         release(id);
         done() } }
#ifdef SLEEPER
  :: atomic { !healed && id == ASLEEP && phase[id] != IDLE && sleepMatters(id) -> readClocks();
       d_step {
         printf("request to sleep of %d lands; clocks %d to %d\n", id, earliest, latest);
         sleep(id);
         done() } }
#endif
#ifdef UNCONDITIONAL_WRITE
  :: d_step { !healed && phase[id] == ASKING && hold == NONE && offer == NONE && queue[0] == NONE && !isOver(id) ->
       printf("%d is seen to be first\n", id); sawFree[id] = true }
  :: atomic { !healed && phase[id] == ASKING && sawFree[id] -> readClocks();
       d_step { printf("grant to %d is written\n", id); grant(id); answerTo(id); done() } }
#endif
  od
}

/* Time passes. A time stops where no rule can tell it from an earlier one. */
#define EARLIER(time, lowest) if :: time > lowest -> time-- :: else fi

inline tick() {
  if :: hold != NONE -> EARLIER(expires, -(MARGIN + FAR + STALL)) :: else fi;
  if :: offer != NONE -> EARLIER(offered, -((offer == ASLEEP -> WAKE : OFFER) + FAR + STALL)) :: else fi;
#ifdef SLEEPER
  if :: hold == ASLEEP -> EARLIER(granted, -(OTHERS + FAR + STALL)) :: else -> granted = 0 fi;
  if :: isWaiter(ASLEEP) || offer == ASLEEP -> if :: kept < SLEEP - 2 * E -> kept++ :: else fi :: else -> kept = 0 fi;
  for (n : 0 .. AGENTS - 1) { if :: claimed[n] && elapsed[n] <= VERDICT -> elapsed[n]++ :: else fi }
#endif
  for (n : 1 .. LEASES) {
    if :: queue[n - 1] != NONE -> EARLIER(alive[n - 1], -(FAR + STALL)) :: else fi;
#ifndef DEADLINE_FROM_RECEIPT
    EARLIER(coming[n], 0);
#endif
    EARLIER(believes[n], 0)
  }
}

/* L1: once the faults are over, the key is granted again in bounded time, whatever the record looks like by then. */
proctype time() {
end:
  do
  :: d_step { !healed -> printf("-- a tick\n"); tick(); done() }
  :: d_step { !healed && phase[LEASES] == IDLE -> healed = true; phase[LEASES] = ASKING; printf("-- the faults are over\n") }
  :: atomic { healed && hold != LEASES ->
       if :: earliest = -E :: earliest = E fi;
       d_step {
         printf("-- a tick; %d asks\n", LEASES);
         tick(); healedFor++;
         latest = earliest; mayWait = true;
         acquire(LEASES);
         if
         :: hold == LEASES -> occurs(9)
         :: hold != LEASES && healedFor > HEALED -> printf("L1: not granted after %d ticks without a fault\n", healedFor); assert(false)
         :: else
         fi;
         done() } }
  od
}

init {
  atomic { for (n : 1 .. LEASES) { run lease(n) } run time(); n = 0 }
#ifdef SLEEPER
  atomic { for (n : 0 .. AGENTS - 1) { run agents(n) } n = 0 }
#endif
}
