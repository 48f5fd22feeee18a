package holdfast;

import java.lang.System.Logger;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

/**
 * Locks of one service. Threads share it.
 *
 * <pre>{@code
 * var locks = new HoldfastLocks(signer);
 * try (var lock = locks.lock("ORDER_1231", Duration.ofSeconds(30), Duration.ofSeconds(10)).orElseThrow()) {
 *   ship(1231, lock.fencingToken());
 * }
 * }</pre>
 */
public final class HoldfastLocks implements AutoCloseable {
  private static final Logger LOG = System.getLogger("holdfast");
  private static final Duration SHORTEST = Duration.ofSeconds(1);
  private static final Duration LONGEST = Duration.ofHours(24);

  private final Requests requests;
  private final Set<HoldfastLock> held = ConcurrentHashMap.newKeySet();

  /** For the service that the environment variable HOLDFAST_URL names. @throws IllegalArgumentException if it isn't set, HoldfastException if it names several */
  public HoldfastLocks(Signer signer) {
    this(Requests.url(System.getenv()), signer);
  }

  /** @param signer proves who asks: for a deployment a signature or a token, for a service on this machine {@link Signer#none} */
  public HoldfastLocks(URI url, Signer signer) {
    this(url, signer, System::currentTimeMillis);
  }

  HoldfastLocks(URI url, Signer signer, LongSupplier wallClock) {
    requests = new Requests(url, signer, wallClock);
  }

  /**
   * Takes the key if it is free; empty while another has it.
   *
   * @param lease the time until others take over from a process that died, 1 s to 24 h; the lock is renewed while it is held
   * @throws HoldfastException if the service refuses or doesn't answer
   */
  public Optional<HoldfastLock> tryLock(String key, Duration lease) throws InterruptedException {
    return lock(key, lease, Duration.ZERO);
  }

  /** As {@link #tryLock}, and waits in the key's queue for up to {@code wait}; empty if another has it until then. */
  public Optional<HoldfastLock> lock(String key, Duration lease, Duration wait) throws InterruptedException {
    var hold = new Hold(requests, key);
    if (requests.isClosed) throw Problem.closed(key).asException();
    try {
      hold.acquire(leaseMs(lease), wait.toMillis());
    } catch (Problem problem) {
      if (problem.isBusy()) return Optional.empty();
      throw problem.asException();
    }
    hold.keep();
    var lock = new HoldfastLock(this, hold);
    held.add(lock);
    if (requests.isClosed) {
      // It was granted while the client was being closed.
      lock.revoke();
      throw Problem.closed(key).asException();
    }
    return Optional.of(lock);
  }

  /**
   * Does work under a lock of another library and then under this one, while a fleet moves from that to this: everybody takes the old lock
   * first. The old one must outlast the wait and the work.
   *
   * @param oldLock takes the old lock, whose {@code close} frees it, such as {@code () -> client.acquireLock(options)} of awslabs' client
   * @throws LockLostException if this lock was lost during the work
   * @throws HoldfastException with the code {@code locked} if another has the key for as long as {@code wait}
   */
  public <T> T underBoth(Callable<? extends AutoCloseable> oldLock, String key, Duration lease, Duration wait, Work<T> work) throws Exception {
    var old = oldLock.call();
    try (var lock = lock(key, lease, wait).orElseThrow(() -> new HoldfastException("locked", true, key + ": another has it"))) {
      return work.under(lock);
    } finally {
      try {
        old.close();
      } catch (Exception notFreed) {
        // The work is done: its result must not be hidden.
        LOG.log(Logger.Level.WARNING, key + ": the old lock was left to its end", notFreed);
      }
    }
  }

  /** Work that needs a lock. */
  @FunctionalInterface
  public interface Work<T> {
    T under(HoldfastLock lock) throws Exception;
  }

  /** Releases what is held, whose users learn of it as of a loss, and grants nothing new: who waits gets an exception with the code {@code closed}. */
  @Override
  public void close() {
    requests.isClosed = true;
    HoldfastException failed = null;
    for (var lock : List.copyOf(held)) {
      try {
        lock.revoke();
      } catch (HoldfastException error) {
        failed = error;
      }
    }
    if (failed != null) throw failed;
  }

  boolean holds(HoldfastLock lock) {
    return held.contains(lock);
  }

  void forget(HoldfastLock lock) {
    held.remove(lock);
  }

  static long leaseMs(Duration lease) {
    if (lease.compareTo(SHORTEST) < 0 || lease.compareTo(LONGEST) > 0)
      throw new IllegalArgumentException("lease: " + lease.toMillis() + " ms given; it is 1 s to 24 h long");
    return lease.toMillis();
  }
}
