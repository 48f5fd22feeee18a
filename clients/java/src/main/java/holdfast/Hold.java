package holdfast;

import holdfast.Requests.Request;
import java.lang.System.Logger;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * One lease: how it is asked for, until when it is believed, and how it ends.
 *
 * <ol>
 *   <li>It is asked for under one id after another. An id that may be granted is cancelled before there is another.
 *   <li>It is believed for {@code remainingMs}, and no longer than was asked for, counted from the request that was answered.
 *   <li>Its end is sent until the service has answered it, or the lease is over.
 * </ol>
 */
final class Hold {
  private static final Logger LOG = System.getLogger("holdfast");
  /** The shortest time for which an answer is waited for, in ms, if its caller doesn't wait. */
  private static final long ASK_MS = 10_000;
  /** The longest time for a renewal, in ms: another one follows. */
  private static final long RENEW_MS = 3000;
  /** The time that the end or the extension of a lease may take from its caller, in ms. An end goes on after that. */
  private static final long END_MS = 5000;
  private static final long CANCEL_MS = 2000;
  /** A lease is given up this part before its end, and this many ms at least: clocks run at rates that differ. */
  private static final long MARGIN_PARTS = 100;
  private static final long MARGIN_MS = 50;
  /** A label for people: this host and process. */
  private static final String OWNER = owner();
  private static final int OWNER_CHARS = 128;
  private static final ExecutorService THREADS = Executors.newCachedThreadPool(work -> {
    var thread = new Thread(work, "holdfast");
    thread.setDaemon(true);
    return thread;
  });

  final String key;
  private final Requests requests;
  private final CompletableFuture<Void> lost = new CompletableFuture<>();
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile boolean isConcluded;
  /** Was it held at its first release? */
  private boolean wasHeld;
  private boolean isReleased;
  /** Was it released under its user? */
  private volatile boolean isRevoked;
  private volatile boolean isOver;
  private volatile long leaseMs;
  private volatile Proof proof;
  private volatile String id = "";
  private boolean mayLive;

  /** The proof of an answer: the lease is held for so many ms from a moment. */
  private record Proof(Moment sent, long lastsMs, long renewAfterMs, long fencingToken) {}

  Hold(Requests requests, String key) {
    this.requests = requests;
    this.key = Key.checked(key);
  }

  long fencingToken() {
    return proof.fencingToken;
  }

  CompletableFuture<Void> lost() {
    return lost;
  }

  /** Asks for it, for so long. @throws Problem {@code locked} if it is held until then */
  void acquire(long leaseMs, long waitMs) throws Problem, InterruptedException {
    this.leaseMs = leaseMs;
    boolean waits = waitMs > 0;
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMs);
    long pause = 40;
    for (long aboveMs = 0; ; pause = Math.min(Requests.PAUSE_MS, pause * 2)) {
      id = newId(aboveMs);
      isOver = false;
      boolean isLast = Requests.leftMs(end) <= 0;
      try {
        underThisId(waits, end);
        return;
      } catch (InterruptedException interrupted) {
        cancel();
        throw interrupted;
      } catch (Problem problem) {
        boolean isGone = !mayLive && problem.byService && problem.definite || cancel();
        boolean asksAgain = isGone && problem.isWaitable() && (waits || problem.retry.equals("new-lease"));
        // A process that stood still may find the id of its place forgotten: the last request is under a new one.
        boolean isEnded = Requests.leftMs(end) <= 0 && (isLast || !problem.code.equals("lease-over"));
        if (!asksAgain || (isEnded && (waits || pause >= Requests.PAUSE_MS))) throw problem;
        long serverTimeMs = Answer.count(problem.body, "serverTimeMs");
        if (problem.code.equals("lease-id-time") && serverTimeMs >= 0) requests.offsetMs = serverTimeMs - requests.wallClock.getAsLong();
        aboveMs = Math.max(0, Answer.count(problem.body, "leaseIdAboveMs") + 1);
        if (problem.retry.equals("new-lease")) continue;
        long advised = problem.isBusy() ? 0 : Math.min(problem.retryAfterMs(), Requests.PAUSE_MS);
        Thread.sleep(Math.max(0, Math.min(Math.max(pause, advised), Requests.leftMs(end))));
      }
    }
  }

  private void underThisId(boolean waits, long end) throws Problem, InterruptedException {
    mayLive = false;
    var request = new Request("PUT", path(), "{\"leaseMs\":" + leaseMs + ",\"owner\":" + Json.quoted(OWNER) + "}", waits, answer -> answer.isWaiting() || isMine(answer));
    while (true) {
      long leftMs = Requests.leftMs(end);
      long forMs = waits ? Math.max(ASK_MS, leftMs) : ASK_MS;
      Answer answer;
      try {
        answer = requests.again(request, forMs, Problem::again);
      } catch (InterruptedException interrupted) {
        mayLive = true;
        throw interrupted;
      }
      mayLive = true;
      if (requests.isClosed) throw Problem.closed(key);
      if (!answer.isWaiting()) {
        if (isSure(answer)) return;
        throw Problem.locked("the lease was nearly over");
      }
      if (leftMs <= 0) throw Problem.locked("still waiting");
      long pause = Math.min(Requests.PAUSE_MS, Math.max(20, answer.count("retryAfterMs")));
      Thread.sleep(Math.max(0, Math.min(pause, Requests.leftMs(end))));
    }
  }

  /** Takes a grant, and renews one that is nearly over, because its answer was slow. */
  private boolean isSure(Answer answer) throws InterruptedException {
    believe(answer);
    if (leftMs() >= proof.renewAfterMs) return true;
    try {
      renew();
    } catch (Problem problem) {
      return false;
    }
    return leftMs() > 0;
  }

  private void believe(Answer answer) {
    long lasts = Math.min(answer.count("remainingMs"), leaseMs);
    lasts -= Math.max(lasts / MARGIN_PARTS, MARGIN_MS);
    proof = new Proof(answer.sent(), lasts, answer.count("renewAfterMs"), answer.count("fencingToken"));
  }

  private long leftMs() {
    return isOver || proof == null ? 0 : proof.lastsMs - requests.now().since(proof.sent);
  }

  /** True if it is held for certain: computed, without a request. */
  boolean isHeld() {
    if (isConcluded) return false;
    if (leftMs() > 0) return true;
    isOver = true;
    return false;
  }

  /** True if it ended before its holder ended it. */
  boolean isLost() {
    return lost.isDone() || (!isConcluded && leftMs() <= 0);
  }

  long remainingMs() {
    return isHeld() ? Math.max(0, leftMs()) : 0;
  }

  /**
   * Makes it so long from now, unless it is longer, and asks again until it is answered. Nothing is sent after the loss: nobody would renew
   * what comes to life then.
   *
   * @throws LockLostException if it is held no more
   */
  void extend(long leaseMs) throws Problem, InterruptedException {
    if (!isHeld()) throw loss();
    renewed(leaseMs, requests.again(renewal(leaseMs), Math.min(END_MS, leftMs()), Problem::isUnsettled));
  }

  /** Makes it as long as before, by one request. No answer is waited for past the end of the lease. */
  private void renew() throws Problem, InterruptedException {
    long forMs = Math.max(100, Math.min(leftMs(), Math.min(RENEW_MS, Math.max(1000, leaseMs / 6))));
    renewed(leaseMs, requests.once(renewal(leaseMs), forMs));
  }

  private Request renewal(long leaseMs) {
    return new Request("POST", path() + "/renew", body(leaseMs), false, this::isMine);
  }

  private void renewed(long leaseMs, Answer answer) {
    this.leaseMs = Math.max(this.leaseMs, leaseMs);
    believe(answer);
  }

  /** Renews it until it ends. Nothing but the end of the lease ends that. */
  void keep() {
    THREADS.execute(() -> {
      long pause = proof.renewAfterMs;
      while (!endsWithin(Math.max(0, Math.min(pause, leftMs() / 2))) && leftMs() > 0) {
        try {
          renew();
          pause = ThreadLocalRandom.current().nextLong(proof.renewAfterMs * 9 / 10, proof.renewAfterMs + 1);
        } catch (Problem problem) {
          if (problem.isLost()) isOver = true;
          pause = Math.min(Requests.PAUSE_MS, proof.renewAfterMs / 4);
        } catch (InterruptedException | RuntimeException | Error unexpected) {
          pause = Math.min(Requests.PAUSE_MS, proof.renewAfterMs / 4);
        }
        if (leftMs() < MARGIN_MS) endsWithin(Math.max(0, leftMs()));
      }
      if (ended.getCount() > 0) {
        isOver = true;
        lost.complete(null);
      }
    });
  }

  private boolean endsWithin(long ms) {
    try {
      return ended.await(ms, TimeUnit.MILLISECONDS);
    } catch (InterruptedException nobodyDoes) {
      return false;
    }
  }

  /**
   * Releases it, also in a thread that was interrupted. Once it is released, it does nothing.
   *
   * @throws LockLostException if it was lost
   * @throws Problem if the service refuses, or hasn't answered yet; the release is then sent until the lease is over
   */
  synchronized void release() throws Problem {
    if (isRevoked) throw new LockLostException(key + ": the client was closed while it was held: another may have had it since");
    end();
  }

  /** Releases it for its client, which is closed. Its user learns of it as of a loss. @throws Problem as {@link #release} */
  synchronized void revoke() throws Problem {
    if (!isConcluded) {
      isRevoked = true;
      lost.complete(null);
    }
    end();
  }

  boolean isRevoked() {
    return isRevoked;
  }

  private void end() throws Problem {
    if (isReleased) return;
    if (!isConcluded) wasHeld = isHeld();
    isConcluded = true;
    ended.countDown();
    var answer = insist(release(id), END_MS);
    var state = answer.leaseState();
    if (!wasHeld || state.equals("lost") || state.equals("never") || (state.equals("unknown") && !answer.repeated()))
      throw loss();
    isReleased = true;
  }

  private LockLostException loss() {
    return new LockLostException(key + ": the lease was lost: another may have had it since, so undo what it guarded");
  }

  /** Keeps the key for so long, if this process ends too, and then frees it. @throws Problem as {@link #release} */
  void releaseAfter(long ms) throws Problem {
    isConcluded = true;
    ended.countDown();
    // Another lease, as short as that, which ends by itself. This one may have hours left.
    var rest = newId(0);
    var body = "{\"leaseId\":\"" + rest + "\",\"leaseMs\":" + Math.max(1000, ms) + "}";
    insist(new Request("POST", path() + "/transfer", body, false, answer -> answer.isLease(key, rest)), END_MS);
    leaseMs = Math.max(1000, ms);
    CompletableFuture.delayedExecutor(ms, TimeUnit.MILLISECONDS, THREADS).execute(() -> ending(release(rest), leaseMs));
  }

  /** Ends an id that may be granted. False without an answer: it is sent until a lease of that id is over. */
  private boolean cancel() {
    try {
      insist(release(id), CANCEL_MS);
      return true;
    } catch (Problem told) {
      return false;
    }
  }

  /** Sends it until it is settled, or the lease is over; its caller waits for a while, whatever interrupts it. */
  private Answer insist(Request request, long waitsMs) throws Problem {
    long forMs = Math.max(waitsMs, proof == null ? leaseMs : leftMs());
    var under = CompletableFuture.supplyAsync(() -> ending(request, forMs), THREADS);
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitsMs);
    boolean wasInterrupted = Thread.interrupted();
    try {
      while (true) {
        try {
          var settled = under.get(Math.max(0, Requests.leftMs(end)), TimeUnit.MILLISECONDS);
          if (settled instanceof Problem problem) throw problem;
          return (Answer) settled;
        } catch (InterruptedException interrupted) {
          wasInterrupted = true;
        } catch (TimeoutException unsettled) {
          throw Problem.noAnswer(request.method() + " " + key + ": not answered yet; it is sent until the lease is over");
        } catch (ExecutionException failed) {
          throw new IllegalStateException(failed.getCause());
        }
      }
    } finally {
      if (wasInterrupted) Thread.currentThread().interrupt();
    }
  }

  /** Returns the answer, or the last problem, which is logged. */
  private Object ending(Request request, long forMs) {
    try {
      return requests.again(request, forMs, Problem::isUnsettled);
    } catch (Problem problem) {
      LOG.log(Logger.Level.WARNING, request.method() + " " + key + ": the lease was left to its end: " + problem.getMessage());
      return problem;
    } catch (InterruptedException nobodyDoes) {
      return Problem.noAnswer("interrupted");
    }
  }

  private Request release(String leaseId) {
    return new Request("DELETE", "/v1/locks/" + key + "/leases/" + leaseId, null, false, answer -> !answer.leaseState().isEmpty());
  }

  private boolean isMine(Answer answer) {
    return answer.isLease(key, id);
  }

  private String path() {
    return "/v1/locks/" + key + "/leases/" + id;
  }

  private static String owner() {
    var process = ":" + ProcessHandle.current().pid();
    try {
      var host = InetAddress.getLocalHost().getHostName();
      return host.substring(0, Math.min(host.length(), OWNER_CHARS - process.length())) + process;
    } catch (UnknownHostException nameless) {
      return "java" + process;
    }
  }

  private static String body(long leaseMs) {
    return "{\"leaseMs\":" + leaseMs + "}";
  }

  /** Returns a UUIDv7 by the service's time, above the given one; then random bits of a SecureRandom. It proves the hold: never log it. */
  private String newId(long aboveMs) {
    var time = String.format("%012x", Math.max(requests.wallClock.getAsLong() + requests.offsetMs, aboveMs));
    return time.substring(0, 8) + "-" + time.substring(8) + "-7" + UUID.randomUUID().toString().substring(15);
  }
}
