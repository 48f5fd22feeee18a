package holdfast;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.support.LockException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** The cases that ShedLock's own kit doesn't have. */
@EnabledIfEnvironmentVariable(named = "HOLDFAST_URL", matches = ".+", disabledReason = "HOLDFAST_URL names no service: npx holdfast dev")
class ShedLockTest {
  private final HoldfastLockProvider provider = new HoldfastLockProvider(URI.create(HoldfastLockProviderTest.URL), Signer.none());

  private static LockConfiguration config(String name, Duration atMost, Duration atLeast) {
    return new LockConfiguration(Instant.now(), name, atMost, atLeast);
  }

  private static void assertFree(String key) {
    assertThat(HoldfastLockProviderTest.inspected(key)).contains("\"holders\":[]");
  }

  @Test
  void raisesALeaseBelowASecondToThat() {
    var lock = provider.lock(config("short", Duration.ofMillis(2), Duration.ZERO)).orElseThrow();
    assertThat(HoldfastLockProviderTest.inspected("short")).contains("\"leaseMs\":1000");
    lock.unlock();
  }

  @Test
  void refusesLeasesThatAreTooLong() {
    assertThatThrownBy(() -> provider.lock(config("long", Duration.ofHours(25), Duration.ZERO)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("lockAtMostFor of long, lease: 90000000 ms given; it is 1 s to 24 h long");
    assertFree("long");
  }

  @Test
  void keepsTheLockOfAProcessThatEndsAsLongAsAtLeastForAndNoLonger() {
    var lock = provider.lock(config("at-least", Duration.ofHours(1), Duration.ofSeconds(2))).orElseThrow();
    lock.unlock();
    assertThat(HoldfastLockProviderTest.inspected("at-least")).matches(".*\"remainingMs\":1?\\d{1,3}[,}].*");
    assertThat(provider.lock(config("at-least", Duration.ofHours(1), Duration.ZERO))).isEmpty();
  }

  /** A time before the lock is what a clock that was set forward since then makes of it. */
  @Test
  void keepsItForAtLeastSoLongWhereverTheClockIsSetMeanwhile() {
    for (long setByMs : List.of(600_000L, -600_000L)) {
      var name = "clock:" + setByMs;
      var createdAt = Instant.now().minusMillis(setByMs);
      provider.lock(new LockConfiguration(createdAt, name, Duration.ofHours(1), Duration.ofSeconds(2))).orElseThrow().unlock();
      assertThat(HoldfastLockProviderTest.inspected(name)).matches(".*\"remainingMs\":1?\\d{1,3}[,}].*");
    }
  }

  @Test
  void namesItsHolderByHostAndProcess() {
    var lock = provider.lock(config("named", Duration.ofSeconds(5), Duration.ZERO)).orElseThrow();
    assertThat(HoldfastLockProviderTest.inspected("named")).containsPattern("\"owner\":\"[^\"]+:" + ProcessHandle.current().pid() + "\"");
    lock.unlock();
  }

  @Test
  void saysThatTheWorkTookLongerThanItsLock() throws Exception {
    var lock = provider.lock(config("overrun", Duration.ofSeconds(1), Duration.ZERO)).orElseThrow();
    Thread.sleep(1100);
    assertThatThrownBy(lock::unlock).isInstanceOf(LockException.class).hasMessageContaining("the work took longer than lockAtMostFor, PT1S");
  }

  @Test
  void saysThatNoServiceIsNamed() {
    assertThatThrownBy(() -> Requests.url(Map.of()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("url: name the service, or set HOLDFAST_URL");
  }

  @Test
  void namesTheFirstOfSeveralServicesAsTheOneToGive() {
    var both = Map.of("HOLDFAST_URL", "https://east.example.com/api,https://west.example.com/api");
    assertThatThrownBy(() -> Requests.url(both))
        .isInstanceOfSatisfying(HoldfastException.class, refused -> assertThat(refused.code()).isEqualTo("not-configured"))
        .hasMessageEndingWith("this client uses one: give it the first as its url, https://east.example.com/api");
  }

  @Test
  void makesAnotherKeyOfEachName() {
    var one = provider.lock(config("nightly report/ä", Duration.ofSeconds(5), Duration.ZERO)).orElseThrow();
    assertThat(HoldfastLockProviderTest.inspected("nightly~20report~2F~C3~A4")).contains("\"holders\":[{");
    assertThat(provider.lock(config("nightly report/ä", Duration.ofSeconds(5), Duration.ZERO))).isEmpty();
    one.unlock();
    assertFree("nightly~20report~2F~C3~A4");
  }

  /** The key remembers eight leases by name, and refuses every id below the latest of all earlier ones. */
  @Test
  void isGrantedAKeyThatCallersUsedWhoseClockIsAhead() {
    var time = String.format("%012x", System.currentTimeMillis() + 1500);
    for (int order = 0; order < 12; order++) {
      var id = String.format("%s-%s-7000-8000-%012x", time.substring(0, 8), time.substring(8), order);
      HoldfastLockProviderTest.asked("PUT", "ahead/leases/" + id);
      HoldfastLockProviderTest.asked("DELETE", "ahead/leases/" + id);
    }
    provider.lock(config("ahead", Duration.ofSeconds(5), Duration.ZERO)).orElseThrow().unlock();
  }

  @Test
  void tellsThatNobodyAnswers() {
    var nobody = new HoldfastLockProvider(URI.create("http://127.0.0.1:9"), Signer.none());
    assertThatThrownBy(() -> nobody.lock(config("any", Duration.ofSeconds(5), Duration.ZERO)))
        .isInstanceOf(LockException.class)
        .hasMessageContaining("no answer of http://127.0.0.1:9");
  }

  @Test
  void releasesInAThreadThatWasInterrupted() {
    var lock = provider.lock(config("interrupted", Duration.ofHours(1), Duration.ZERO)).orElseThrow();
    Thread.currentThread().interrupt();
    lock.unlock();
    assertThat(Thread.interrupted()).isTrue();
    assertFree("interrupted");
  }

  @Test
  void keepsForAtLeastSoLongInAThreadThatWasInterrupted() {
    var lock = provider.lock(config("kept", Duration.ofHours(1), Duration.ofSeconds(2))).orElseThrow();
    Thread.currentThread().interrupt();
    lock.unlock();
    assertThat(Thread.interrupted()).isTrue();
    assertThat(HoldfastLockProviderTest.inspected("kept")).matches(".*\"remainingMs\":1?\\d{1,3}[,}].*");
  }
}
