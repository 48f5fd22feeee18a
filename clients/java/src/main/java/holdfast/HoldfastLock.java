package holdfast;

import java.time.Duration;
import java.util.concurrent.CompletionStage;

/** A lock that is held, and renews itself until it is released or lost. Threads may share it. */
public final class HoldfastLock implements AutoCloseable {
  private final HoldfastLocks locks;
  private final Hold hold;

  HoldfastLock(HoldfastLocks locks, Hold hold) {
    this.locks = locks;
    this.hold = hold;
  }

  public String key() {
    return hold.key;
  }

  /** Returns a number that increases with every grant of the key. Give it to the resource that you write to, which refuses a smaller one. */
  public long fencingToken() {
    return hold.fencingToken();
  }

  /** True if it is held for certain. Ask before each side effect: it costs no request. */
  public boolean isHeld() {
    return hold.isHeld();
  }

  /** Returns how long it is held for certain if nothing renews it; zero if it is lost. */
  public Duration remaining() {
    return Duration.ofMillis(hold.remainingMs());
  }

  /** True if it was lost while it was held. */
  public boolean isLost() {
    return hold.isLost();
  }

  /** Completes when the lock is lost, at the end of its lease at the latest, or when its client is closed. It never does after a release. */
  public CompletionStage<Void> lost() {
    return hold.lost();
  }

  /**
   * Makes the lease so long from now, for a time in which nothing can be sent. The lock renews itself without it. A lease never gets shorter.
   *
   * @throws LockLostException if it is held no more
   * @throws HoldfastException if the service refuses or doesn't answer
   */
  public void renew(Duration lease) throws InterruptedException {
    try {
      hold.extend(HoldfastLocks.leaseMs(lease));
    } catch (Problem problem) {
      if (problem.isLost()) throw new LockLostException(key() + ": " + problem.getMessage());
      throw problem.asException();
    }
  }

  /**
   * Frees the key, also in a thread that was interrupted. If the service refuses it or doesn't answer, it is sent until the lease is over.
   * A second release does nothing.
   *
   * @throws LockLostException if it was lost before, or its client was closed: undo what it guarded
   * @throws HoldfastException if the service has not answered within 5 s
   */
  public void release() {
    locks.forget(this);
    try {
      hold.release();
    } catch (Problem problem) {
      throw problem.asException();
    }
  }

  /** Releases it, if it was not released yet. @throws HoldfastException as {@link #release} */
  @Override
  public void close() {
    if (locks.holds(this) || hold.isRevoked()) release();
  }

  /** Releases it for its client, which is closed. @throws HoldfastException as {@link #release} */
  void revoke() {
    locks.forget(this);
    try {
      hold.revoke();
    } catch (Problem problem) {
      throw problem.asException();
    }
  }
}
