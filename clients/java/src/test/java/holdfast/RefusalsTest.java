package holdfast;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Set;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import software.amazon.awssdk.identity.spi.AwsCredentialsIdentity;

/** A gateway's refusals between ShedLock and the service, and what the signer sees. */
@EnabledIfEnvironmentVariable(named = "HOLDFAST_URL", matches = ".+", disabledReason = "HOLDFAST_URL names no service: npx holdfast dev")
class RefusalsTest {
  private static final String URL = System.getenv("HOLDFAST_URL");
  private static final Duration HOUR = Duration.ofHours(1);

  private static LockConfiguration config(String name, Duration atMost, Duration atLeast) {
    return new LockConfiguration(Instant.now(), name, atMost, atLeast);
  }

  @ParameterizedTest
  @ValueSource(ints = {302, 401, 403, 404, 429, 500, 503})
  void anUnlockThatIsRefusedIsAskedAgain(int status) throws Exception {
    try (var gateway = new Gateway(URL)) {
      var provider = new HoldfastLockProvider(gateway.url(), Signer.none());
      var lock = provider.lock(config("refused-" + status, HOUR, Duration.ZERO)).orElseThrow();
      gateway.refuse("DELETE", status, status, status);
      lock.unlock();
      assertThat(provider.lock(config("refused-" + status, HOUR, Duration.ZERO))).isPresent();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {403, 429, 503})
  void anUnlockThatKeepsTheKeyForAWhileIsAskedAgainToo(int status) throws Exception {
    try (var gateway = new Gateway(URL)) {
      var provider = new HoldfastLockProvider(gateway.url(), Signer.none());
      var lock = provider.lock(config("kept-" + status, HOUR, Duration.ofSeconds(60))).orElseThrow();
      gateway.refuse("POST", status, status, status);
      lock.unlock();
      var transfers = gateway.seen.stream().filter(seen -> seen.method().equals("POST")).map(seen -> new String(seen.body())).toList();
      assertThat(transfers).hasSize(4);
      assertThat(Set.copyOf(transfers)).singleElement().asString().matches(".*\"leaseMs\":[56]\\d{4}}");
      assertThat(provider.lock(config("kept-" + status, HOUR, Duration.ZERO))).isEmpty();
    }
  }

  @Test
  void anUnlockThatStaysRefusedIsToldAndGoesOn() throws Exception {
    try (var gateway = new Gateway(URL)) {
      var provider = new HoldfastLockProvider(gateway.url(), Signer.none());
      var lock = provider.lock(config("stays", HOUR, Duration.ZERO)).orElseThrow();
      // Their pauses are 6 s together at least, and 13 s at most.
      var refusals = new Integer[8];
      Arrays.fill(refusals, 403);
      gateway.refuse("DELETE", refusals);
      assertThatThrownBy(lock::unlock).isInstanceOf(LockException.class).hasMessageContaining("sent until the lease is over");
      var next = Optional.<SimpleLock>empty();
      for (int asked = 0; asked < 600 && next.isEmpty(); asked++) {
        Thread.sleep(100);
        next = provider.lock(config("stays", HOUR, Duration.ZERO));
      }
      assertThat(next).isPresent();
    }
  }

  @Test
  void theSignerSeesTheWholeRequest() throws Exception {
    try (var gateway = new Gateway(URL)) {
      var signer = new AwsSigner(() -> AwsCredentialsIdentity.create("AKIDEXAMPLE", "secret"), "eu-west-1");
      var lock = new HoldfastLockProvider(gateway.url(), signer).lock(config("signed", HOUR, Duration.ZERO)).orElseThrow();
      var seen = gateway.seen.get(0);
      var signature = seen.headers().get("Authorization").get(0);
      assertThat(signature).contains("/eu-west-1/execute-api/aws4_request").contains("SignedHeaders=content-type;host;");
      var digest = MessageDigest.getInstance("SHA-256").digest(seen.body());
      assertThat(seen.headers().get("X-amz-content-sha256")).containsExactly(HexFormat.of().formatHex(digest));
      lock.unlock();
    }
  }
}
