import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.support.LockException;
import net.javacrumbs.shedlock.test.support.AbstractExtensibleLockProviderIntegrationTest;
import org.junit.jupiter.api.Test;

/** ShedLock's own kit against a local service. Two of its tests ask for leases of 1 and 50 ms, which are refused by name. */
class HoldfastLockProviderTest extends AbstractExtensibleLockProviderIntegrationTest {
  private static final String URL = System.getenv("HOLDFAST_URL");
  /** What the service waits after the end of a lease that nobody released, and some more. */
  private static final Duration MARGIN = Duration.ofMillis(2500);

  private final ExtensibleLockProvider provider = new HoldfastLockProvider(URI.create(URL));

  @Override
  protected ExtensibleLockProvider getLockProvider() {
    return provider;
  }

  @Override
  protected void assertUnlocked(String name) {
    assertThat(inspected(name)).contains("\"holders\":[]");
  }

  @Override
  protected void assertLocked(String name) {
    assertThat(inspected(name)).contains("\"holders\":[{");
  }

  private static String inspected(String name) {
    return asked("GET", name);
  }

  private static String asked(String method, String path) {
    try {
      var request = HttpRequest.newBuilder(URI.create(URL + "/v1/locks/" + path)).method(method, HttpRequest.BodyPublishers.noBody()).build();
      return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
    } catch (Exception error) {
      throw new AssertionError(error);
    }
  }

  private static LockConfiguration config(String name, Duration atMost, Duration atLeast) {
    return new LockConfiguration(Instant.now(), name, atMost, atLeast);
  }

  @Test
  @Override
  public void shouldTimeout() throws InterruptedException {
    refuses(Duration.ofMillis(50));
    var second = Duration.ofSeconds(1);
    assertThat(provider.lock(config(LOCK_NAME1, second, Duration.ZERO))).isPresent();
    assertThat(provider.lock(config(LOCK_NAME1, second, Duration.ZERO))).isEmpty();
    sleepFor(second.plus(MARGIN));
    assertUnlocked(LOCK_NAME1);
    assertThat(provider.lock(config(LOCK_NAME1, second, Duration.ZERO))).isPresent().get().satisfies(lock -> lock.unlock());
  }

  @Test
  @Override
  public void shouldNotBeAbleToExtendExpiredLock() {
    refuses(Duration.ofMillis(1));
    var second = Duration.ofSeconds(1);
    var lock = provider.lock(config(LOCK_NAME1, second, Duration.ZERO)).orElseThrow();
    sleepFor(second.plus(MARGIN));
    var next = provider.lock(config(LOCK_NAME1, second, Duration.ZERO)).orElseThrow();
    assertThat(lock.extend(second, Duration.ZERO)).isEmpty();
    next.unlock();
  }

  private void refuses(Duration length) {
    assertThatThrownBy(() -> provider.lock(config("short", length, Duration.ZERO)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("lockAtMostFor of short: " + length.toMillis() + " ms given; a lease is 1 s to 24 h long");
    assertUnlocked("short");
  }

  @Test
  void refusesLeasesThatAreTooLong() {
    refuses(Duration.ofHours(25));
  }

  @Test
  void keepsTheLockOfAProcessThatEndsAsLongAsAtLeastForAndNoLonger() {
    var lock = provider.lock(config("at-least", Duration.ofHours(1), Duration.ofSeconds(2))).orElseThrow();
    lock.unlock();
    assertThat(inspected("at-least")).matches(".*\"remainingMs\":1?\\d{1,3}[,}].*");
    assertThat(provider.lock(config("at-least", Duration.ofHours(1), Duration.ZERO))).isEmpty();
  }

  @Test
  void makesAnotherKeyOfEachName() {
    var one = provider.lock(config("nightly report/ä", Duration.ofSeconds(5), Duration.ZERO)).orElseThrow();
    assertLocked("nightly~20report~2F~C3~A4");
    assertThat(provider.lock(config("nightly report/ä", Duration.ofSeconds(5), Duration.ZERO))).isEmpty();
    one.unlock();
    assertUnlocked("nightly~20report~2F~C3~A4");
  }

  /** The key remembers eight leases by name, and refuses every id below the latest of all earlier ones. */
  @Test
  void isGrantedAKeyThatCallersUsedWhoseClockIsAhead() {
    var time = String.format("%012x", System.currentTimeMillis() + 1500);
    for (int order = 0; order < 12; order++) {
      var id = String.format("%s-%s-7000-8000-%012x", time.substring(0, 8), time.substring(8), order);
      asked("PUT", "ahead/leases/" + id);
      asked("DELETE", "ahead/leases/" + id);
    }
    provider.lock(config("ahead", Duration.ofSeconds(5), Duration.ZERO)).orElseThrow().unlock();
  }

  @Test
  void tellsThatNobodyAnswers() {
    var nobody = new HoldfastLockProvider(URI.create("http://127.0.0.1:9"));
    assertThatThrownBy(() -> nobody.lock(config("any", Duration.ofSeconds(5), Duration.ZERO)))
        .isInstanceOf(LockException.class)
        .hasMessageContaining("no answer of http://127.0.0.1:9");
  }
}
