package holdfast;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** The lock for those who come from a client of DynamoDB locks. The scenes have the rest. */
@EnabledIfEnvironmentVariable(named = "HOLDFAST_URL", matches = ".+", disabledReason = "HOLDFAST_URL names no service: npx holdfast dev")
class HoldfastLocksTest {
  private static final Duration LEASE = Duration.ofSeconds(5);

  private final HoldfastLocks locks = new HoldfastLocks(URI.create(System.getenv("HOLDFAST_URL")), Signer.none());
  private final List<String> told = new ArrayList<>();

  @AfterEach
  void freeAll() {
    locks.close();
  }

  @Test
  void everyGrantHasALargerToken() throws Exception {
    long before;
    try (var lock = locks.tryLock("tokens", LEASE).orElseThrow()) {
      before = lock.fencingToken();
      assertThat(locks.tryLock("tokens", LEASE)).isEmpty();
    }
    assertThat(locks.tryLock("tokens", LEASE).orElseThrow().fencingToken()).isGreaterThan(before);
  }

  @Test
  void aRenewalMakesALeaseLongerAndNeverShorter() throws Exception {
    var lock = locks.tryLock("renewed", LEASE).orElseThrow();
    lock.renew(Duration.ofMinutes(10));
    assertThat(lock.remaining()).isGreaterThan(Duration.ofMinutes(9));
    lock.renew(LEASE);
    assertThat(lock.remaining()).isGreaterThan(Duration.ofMinutes(9));
  }

  @Test
  void aSecondReleaseDoesNothing() throws Exception {
    var lock = locks.tryLock("twice", LEASE).orElseThrow();
    lock.release();
    var next = locks.tryLock("twice", LEASE).orElseThrow();
    lock.release();
    assertThat(lock.isLost()).isFalse();
    next.release();
  }

  @Test
  void aReleaseThatWasNotAnsweredIsNoLoss() throws Exception {
    try (var gateway = new Gateway(System.getenv("HOLDFAST_URL")); var behind = new HoldfastLocks(gateway.url(), Signer.none())) {
      var lock = behind.tryLock("unanswered", Duration.ofHours(1)).orElseThrow();
      var refusals = new Integer[99];
      Arrays.fill(refusals, 503);
      gateway.refuse("DELETE", refusals);
      assertThatThrownBy(lock::release).isInstanceOfSatisfying(HoldfastException.class, error -> assertThat(error.code()).isEqualTo("unavailable"));
      gateway.refuse("DELETE");
      lock.release();
      assertThat(locks.tryLock("unanswered", LEASE)).isPresent();
    }
  }

  @Test
  void workIsDoneUnderBothTheOldLockFirst() throws Exception {
    var result = locks.underBoth(() -> old("both"), "both", LEASE, Duration.ZERO, lock -> {
      told.add("work " + locks.tryLock("both", LEASE).isPresent());
      return 7;
    });
    assertThat(result).isEqualTo(7);
    assertThat(told).containsExactly("took both", "work false", "freed both");
    assertThat(locks.tryLock("both", LEASE)).isPresent();
  }

  @Test
  void workUnderBothThatIsDoneIsNotHiddenByTheOldLock() throws Exception {
    AutoCloseable fails = () -> {
      throw new IllegalStateException("the old table is gone");
    };
    assertThat(locks.<String>underBoth(() -> fails, "hidden", LEASE, Duration.ZERO, lock -> "done")).isEqualTo("done");
  }

  @Test
  void workUnderBothIsNotDoneWhileAnotherHasTheKey() throws Exception {
    locks.tryLock("other", LEASE).orElseThrow();
    assertThatThrownBy(() -> locks.underBoth(() -> old("other"), "other", LEASE, Duration.ZERO, lock -> told.add("work")))
        .isInstanceOfSatisfying(HoldfastException.class, error -> assertThat(error.code()).isEqualTo("locked"));
    assertThat(told).containsExactly("took other", "freed other");
  }

  @Test
  void isToldAsLostAtTheEndOfItsLeaseWhateverTheSignerThrows() throws Exception {
    var isBroken = new AtomicBoolean();
    Signer signer = (method, address, headers, body) -> {
      if (isBroken.get()) throw new NoClassDefFoundError("of a library that signs");
      return Map.of();
    };
    try (var signed = new HoldfastLocks(URI.create(System.getenv("HOLDFAST_URL")), signer)) {
      var lock = signed.tryLock("unsigned", Duration.ofSeconds(1)).orElseThrow();
      isBroken.set(true);
      lock.lost().toCompletableFuture().get(10, TimeUnit.SECONDS);
      isBroken.set(false);
      assertThatThrownBy(lock::release).isInstanceOf(LockLostException.class);
    }
  }

  @Test
  void aCloseUnderWorkIsToldAsALoss() throws Exception {
    assertThatThrownBy(() -> locks.underBoth(() -> old("closed"), "closed", LEASE, Duration.ZERO, lock -> {
          locks.close();
          assertThat(lock.isLost()).isTrue();
          assertThat(lock.lost().toCompletableFuture()).isDone();
          return "done";
        }))
        .isInstanceOf(LockLostException.class)
        .hasMessageContaining("closed: the client was closed while it was held");
  }

  @Test
  void aClosedClientGrantsNothing() throws Exception {
    var other = new HoldfastLocks(URI.create(System.getenv("HOLDFAST_URL")), Signer.none());
    var held = other.tryLock("late", LEASE).orElseThrow();
    var waits = CompletableFuture.runAsync(() -> {
      try {
        locks.lock("late", LEASE, Duration.ofSeconds(30));
      } catch (InterruptedException nobodyDoes) {
        throw new IllegalStateException(nobodyDoes);
      }
    });
    while (!HoldfastLockProviderTest.inspected("late").contains("\"waiters\":[{")) Thread.onSpinWait();
    locks.close();
    held.release();
    assertThatThrownBy(waits::join).hasCauseInstanceOf(HoldfastException.class).hasMessageContaining("closed: late: the client is closed");
    assertThat(other.lock("late", LEASE, LEASE)).isPresent();
    other.close();
    assertThatThrownBy(() -> locks.tryLock("later", LEASE))
        .isInstanceOfSatisfying(HoldfastException.class, error -> assertThat(error.code()).isEqualTo("closed"));
  }

  private AutoCloseable old(String name) {
    told.add("took " + name);
    return () -> told.add("freed " + name);
  }
}
