package holdfast;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.test.support.AbstractExtensibleLockProviderIntegrationTest;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** ShedLock's own kit against a local service, and nothing else: its number of tests is told. Its leases of 1 to 50 ms are raised to a second here, so the kit waits as much longer. */
@EnabledIfEnvironmentVariable(named = "HOLDFAST_URL", matches = ".+", disabledReason = "HOLDFAST_URL names no service: npx holdfast dev")
class HoldfastLockProviderTest extends AbstractExtensibleLockProviderIntegrationTest {
  static final String URL = System.getenv("HOLDFAST_URL");
  /** A lease of a second, what the service waits after the end of one that nobody released, and some more. */
  private static final Duration OVER = Duration.ofMillis(3500);

  private final ExtensibleLockProvider provider = new HoldfastLockProvider(URI.create(URL), Signer.none());

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

  /** The kit sleeps twice as long. */
  @Override
  protected void doTestTimeout(Duration lockAtMostFor) throws InterruptedException {
    super.doTestTimeout(OVER);
  }

  @Override
  protected void sleepFor(Duration duration) {
    super.sleepFor(duration.compareTo(OVER) < 0 ? OVER : duration);
  }

  static String inspected(String name) {
    return asked("GET", name);
  }

  static String asked(String method, String path) {
    try {
      var request = HttpRequest.newBuilder(URI.create(URL + "/v1/locks/" + path)).method(method, HttpRequest.BodyPublishers.noBody()).build();
      return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
    } catch (Exception error) {
      throw new AssertionError(error);
    }
  }
}
