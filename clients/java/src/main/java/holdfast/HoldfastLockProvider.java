package holdfast;

import java.net.URI;
import java.time.Duration;
import java.util.Optional;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;

/**
 * ShedLock's locks in holdfast's HTTP API, so that {@code @SchedulerLock} needs no database.
 *
 * <pre>{@code
 * @Bean
 * LockProvider lockProvider(Signer signer) {
 *   return new HoldfastLockProvider(signer);
 * }
 * }</pre>
 *
 * {@code lockAtMostFor} is the lease. It may be up to 24 h; one below a second is raised to that. A process that died is replaced about a
 * second after it. An {@code extend} never makes the lease shorter. An {@code unlock} that the service refuses or doesn't answer is sent until
 * the lease is over, and after 5 s throws {@link LockException}.
 */
public final class HoldfastLockProvider implements ExtensibleLockProvider {
  private static final Duration SHORTEST = Duration.ofSeconds(1);

  private final Requests requests;

  /** For the service that the environment variable HOLDFAST_URL names. @throws IllegalArgumentException if it isn't set, HoldfastException if it names several */
  public HoldfastLockProvider(Signer signer) {
    this(Requests.url(System.getenv()), signer);
  }

  /** @param signer proves who asks: for a deployment a signature or a token, for a service on this machine {@link Signer#none} */
  public HoldfastLockProvider(URI url, Signer signer) {
    requests = new Requests(url, signer, System::currentTimeMillis);
  }

  /** Returns the lock, or nothing while another has it. @throws LockException if the service can't be reached or refuses */
  @Override
  public Optional<SimpleLock> lock(LockConfiguration configuration) {
    var hold = new Hold(requests, Key.of(configuration.getName()));
    try {
      hold.acquire(leaseMs(configuration), 0);
      return Optional.of(new Lock(configuration, hold));
    } catch (Problem problem) {
      if (problem.isBusy()) return Optional.empty();
      throw failed("lock", configuration, problem);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw failed("lock", configuration, interrupted);
    }
  }

  private static final class Lock extends AbstractSimpleLock {
    private final Hold hold;
    private final long sinceNanos = System.nanoTime();

    private Lock(LockConfiguration configuration, Hold hold) {
      super(configuration);
      this.hold = hold;
    }

    /** Frees the lock, or as late as {@code lockAtLeastFor} says. */
    @Override
    protected void doUnlock() {
      // By the clock that nobody sets: the other would free it at once if it was set forward, and keep it for as long as it was set back.
      long left = lockConfiguration.getLockAtLeastFor().minusNanos(System.nanoTime() - sinceNanos).toMillis();
      try {
        if (left > 0) hold.releaseAfter(left);
        else hold.release();
      } catch (LockLostException lost) {
        var why = "it was lost: the work took longer than lockAtMostFor, " + lockConfiguration.getLockAtMostFor() + ", or an operator broke the lock";
        throw new LockException("unlock " + lockConfiguration.getName() + ": " + why + ". Another may have had it since, so undo what it guarded", lost);
      } catch (Problem problem) {
        throw failed("unlock", lockConfiguration, problem);
      }
    }

    @Override
    protected Optional<SimpleLock> doExtend(LockConfiguration extended) {
      try {
        hold.extend(leaseMs(extended));
        return Optional.of(new Lock(extended, hold));
      } catch (LockLostException lost) {
        return Optional.empty();
      } catch (Problem problem) {
        if (problem.isLost()) return Optional.empty();
        throw failed("extend", extended, problem);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw failed("extend", extended, interrupted);
      }
    }
  }

  private static LockException failed(String what, LockConfiguration configuration, Exception cause) {
    return new LockException(what + " " + configuration.getName() + ": " + cause.getMessage(), cause);
  }

  private static long leaseMs(LockConfiguration configuration) {
    var length = configuration.getLockAtMostFor();
    try {
      return HoldfastLocks.leaseMs(length.compareTo(SHORTEST) < 0 ? SHORTEST : length);
    } catch (IllegalArgumentException tooLong) {
      throw new IllegalArgumentException("lockAtMostFor of " + configuration.getName() + ", " + tooLong.getMessage());
    }
  }
}
