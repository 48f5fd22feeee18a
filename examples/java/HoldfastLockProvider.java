import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;

/**
 * ShedLock's locks in holdfast's HTTP API, so that {@code @SchedulerLock} needs no database. Copy this file into your application:
 *
 * <pre>{@code
 * @Bean
 * LockProvider lockProvider() {
 *   return new HoldfastLockProvider(URI.create(System.getenv("HOLDFAST_URL")), () -> Map.of("authorization", "Bearer " + token()));
 * }
 * }</pre>
 *
 * {@code lockAtMostFor} is the lease: 1 s to 24 h. A process that died is replaced about a second after it. A shorter or longer one is
 * refused by name: rounded, the lock would not be what the annotation says. An {@code extend} never makes the lease shorter.
 */
public final class HoldfastLockProvider implements ExtensibleLockProvider {
  private static final Duration SHORTEST = Duration.ofSeconds(1);
  private static final Duration LONGEST = Duration.ofHours(24);
  private static final Duration REQUEST = Duration.ofSeconds(5);
  private static final int TRIES = 3;
  private static final Pattern ABOVE = Pattern.compile("\"leaseIdAboveMs\":(\\d{1,15})");

  private final HttpClient http = HttpClient.newBuilder().connectTimeout(REQUEST).build();
  private final ScheduledExecutorService later = Executors.newSingleThreadScheduledExecutor(work -> {
    var thread = new Thread(work, "holdfast-unlock");
    thread.setDaemon(true);
    return thread;
  });
  private final String url;
  private final Supplier<Map<String, String>> headers;

  /** @param headers the headers of each request, such as a JWT; it is asked each time, because tokens end */
  public HoldfastLockProvider(URI url, Supplier<Map<String, String>> headers) {
    this.url = url.toString().replaceAll("/+$", "");
    this.headers = headers;
  }

  public HoldfastLockProvider(URI url) {
    this(url, Map::of);
  }

  /** Returns the lock, or nothing while another has it. @throws LockException if the service can't be reached or refuses */
  @Override
  public Optional<SimpleLock> lock(LockConfiguration configuration) {
    var lease = leaseMs(configuration);
    var path = "/v1/locks/" + key(configuration.getName()) + "/leases/";
    var id = leaseId(0);
    for (int attempt = 1; ; attempt++) {
      // The same id each time, so an answer that got lost is no second lock.
      var answer = send("PUT", path + id, lease);
      var status = answer.statusCode();
      if (status == 200 || status == 201) return Optional.of(new Lock(configuration, path, id));
      if (status == 423) return Optional.empty();
      if (status != 410 || attempt == TRIES) throw new LockException("lock " + configuration.getName() + ": the service answered " + status);
      // This id is older than those that the key remembers, because others came and left meanwhile: a later one isn't.
      id = leaseId(aboveMs(answer.body()) + 1);
    }
  }

  private final class Lock extends AbstractSimpleLock {
    private final String path;
    private final String id;

    private Lock(LockConfiguration configuration, String path, String id) {
      super(configuration);
      this.path = path;
      this.id = id;
    }

    /** Frees the lock, or as late as {@code lockAtLeastFor} says. */
    @Override
    protected void doUnlock() {
      var left = Duration.between(Instant.now(), lockConfiguration.getLockAtLeastUntil());
      if (left.isNegative() || left.isZero()) {
        send("DELETE", path + id, null);
        return;
      }
      // Another lease, as short as that: it ends by itself if this process does so before. This one may have hours left.
      var rest = leaseId(0);
      var length = left.compareTo(SHORTEST) < 0 ? SHORTEST : left;
      send("POST", path + id + "/transfer", "{\"leaseId\":\"" + rest + "\",\"leaseMs\":" + length.toMillis() + "}");
      later.schedule(() -> send("DELETE", path + rest, null), left.toMillis(), TimeUnit.MILLISECONDS);
    }

    @Override
    protected Optional<SimpleLock> doExtend(LockConfiguration extended) {
      var answer = send("POST", path + id + "/renew", leaseMs(extended));
      return answer.statusCode() == 200 ? Optional.of(new Lock(extended, path, id)) : Optional.empty();
    }
  }

  private static String leaseMs(LockConfiguration configuration) {
    var length = configuration.getLockAtMostFor();
    if (length.compareTo(SHORTEST) < 0 || length.compareTo(LONGEST) > 0)
      throw new IllegalArgumentException(
          "lockAtMostFor of " + configuration.getName() + ": " + length.toMillis() + " ms given; a lease is 1 s to 24 h long");
    return "{\"leaseMs\":" + length.toMillis() + "}";
  }

  /** Sends a request, up to three times while nobody answers. Every one of these calls may be sent again. */
  private HttpResponse<String> send(String method, String path, String body) {
    IOException cause = null;
    for (int attempt = 0; attempt < TRIES; attempt++) {
      var publisher = body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
      var request = HttpRequest.newBuilder(URI.create(url + path)).timeout(REQUEST).method(method, publisher);
      if (body != null) request.header("content-type", "application/json");
      headers.get().forEach(request::setHeader);
      try {
        var answer = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() < 500 || attempt == TRIES - 1) return answer;
        Thread.sleep(100L << attempt);
      } catch (IOException noAnswer) {
        cause = noAnswer;
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw new LockException(method + " " + path.replaceAll("/leases/.*", "") + ": interrupted", interrupted);
      }
    }
    throw new LockException(method + " " + path.replaceAll("/leases/.*", "") + ": no answer of " + url, cause);
  }

  /** Returns the key of a name, as {@code key(name)} of holdfast's SDK makes it: no two names share one. */
  private static String key(String name) {
    var encoded = new StringBuilder();
    for (byte each : name.getBytes(StandardCharsets.UTF_8)) {
      char letter = (char) (each & 0xff);
      boolean isKept = letter < 128 && (Character.isLetterOrDigit(letter) || ".:-".indexOf(letter) >= 0);
      encoded.append(isKept ? String.valueOf(letter) : String.format("~%02X", (int) letter));
    }
    var whole = encoded.toString();
    if (whole.equals(".") || whole.equals("..")) return whole.replace(".", "~2E");
    return whole.length() < 200 ? whole : whole.substring(0, 135) + "~" + sha256(whole);
  }

  private static String sha256(String text) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
    } catch (NoSuchAlgorithmException everyJavaHasIt) {
      throw new IllegalStateException(everyJavaHasIt);
    }
  }

  /** Returns the time, in ms, above which the service takes a new id; 0 if it says none. */
  private static long aboveMs(String problem) {
    var said = ABOVE.matcher(problem);
    return said.find() ? Long.parseLong(said.group(1)) : 0;
  }

  /** Returns a UUIDv7: the time in ms, at least the given one, then random bits of a SecureRandom. */
  private static String leaseId(long leastMs) {
    var time = String.format("%012x", Math.max(System.currentTimeMillis(), leastMs));
    return time.substring(0, 8) + "-" + time.substring(8) + "-7" + UUID.randomUUID().toString().substring(15);
  }
}
