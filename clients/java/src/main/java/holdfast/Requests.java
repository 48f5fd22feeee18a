package holdfast;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/** Sends requests to one service, and says what came back. It knows no lease. */
final class Requests {
  /** The longest pause between two tries, in ms. */
  static final long PAUSE_MS = 1000;

  /** The longest time for one try, in ms. */
  private static final long TRY_MS = 10_000;
  private static final int SECRET_CHARS = 8;
  private static final int SAID_CHARS = 200;
  private static final Pattern ID = Pattern.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}");
  private static final Pattern HEADER = Pattern.compile("[\\t\\x20-\\x7e\\x80-\\xff]*");
  /** The headers that Java's client sends by itself. */
  private static final Set<String> ITS_OWN = Set.of("host", "content-length", "connection", "expect", "upgrade");

  /**
   * One request, which may be sent again.
   *
   * @param body null for none
   * @param queues true to take a place in the queue
   * @param proves false for a success that is none to this request
   */
  record Request(String method, String path, String body, boolean queues, Predicate<Answer> proves) {}

  final LongSupplier wallClock;
  /** The time by which the service's clock is ahead of this one, in ms, if it refused an id for its time. */
  volatile long offsetMs;
  /** True once nothing new is asked for. */
  volatile boolean isClosed;
  private final String url;
  private final Signer signer;
  /** One that never follows a redirect: what it names gets no token and no leaseId. */
  private final HttpClient http =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).followRedirects(HttpClient.Redirect.NEVER).connectTimeout(Duration.ofMillis(TRY_MS)).build();

  Requests(URI url, Signer signer, LongSupplier wallClock) {
    this.url = url.toString().replaceAll("/+$", "");
    this.signer = signer;
    this.wallClock = wallClock;
  }

  /** Returns HOLDFAST_URL. @throws IllegalArgumentException if it isn't set, HoldfastException if it names several services */
  static URI url(Map<String, String> environment) {
    var url = environment.get("HOLDFAST_URL");
    if (url == null || url.isEmpty()) throw new IllegalArgumentException("url: name the service, or set HOLDFAST_URL");
    int comma = url.indexOf(',');
    if (comma >= 0) {
      var first = url.substring(0, comma).strip();
      throw Problem.notConfigured("HOLDFAST_URL names several services, and this client uses one: give it the first as its url, " + first).asException();
    }
    return URI.create(url);
  }

  Moment now() {
    return Moment.now(wallClock);
  }

  /** Sends it again, with a pause, for as long as the answer may be another. @throws Problem the last one */
  Answer again(Request request, long forMs, Predicate<Problem> isUnsettled) throws Problem, InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(forMs);
    boolean definite = true;
    for (int tries = 0; ; tries++) {
      try {
        var answer = once(request, Math.max(100, leftMs(end)));
        return definite ? answer : new Answer(answer.status(), answer.body(), answer.leaseState(), answer.sent(), true);
      } catch (Problem problem) {
        definite = problem.definite = definite && problem.definite;
        // A request that is sent for hours is sent less often in the end.
        long most = Math.min(Math.max(PAUSE_MS, Math.min(30 * PAUSE_MS, forMs / 100)), 50L << Math.min(tries, 9));
        long pause = problem.retryAfterMs() + ThreadLocalRandom.current().nextLong(most / 2, most + 1);
        if (!isUnsettled.test(problem) || leftMs(end) <= pause) throw problem;
        Thread.sleep(pause);
      }
    }
  }

  static long leftMs(long endNanos) {
    return TimeUnit.NANOSECONDS.toMillis(endNanos - System.nanoTime());
  }

  /** Sends it once. @throws Problem unless the answer is a success that proves something */
  Answer once(Request request, long forMs) throws Problem, InterruptedException {
    var sent = now();
    var headers = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
    HttpResponse<String> response;
    try {
      var built = built(request, headers);
      var pending = http.sendAsync(built, HttpResponse.BodyHandlers.ofString());
      try {
        response = pending.get(Math.min(TRY_MS, forMs), TimeUnit.MILLISECONDS);
      } finally {
        pending.cancel(true);
      }
    } catch (InterruptedException | Problem passed) {
      throw passed;
    } catch (Exception failed) {
      // Not its message, which may quote the path, with the leaseId, or the token.
      var cause = failed.getCause() == null ? failed : failed.getCause();
      throw Problem.noAnswer(request.method + ": no answer of " + url + " (" + cause.getClass().getSimpleName() + ")");
    }
    var body = Json.object(response.body());
    var type = response.headers().firstValue("content-type").orElse("");
    if (response.statusCode() / 100 != 2) {
      boolean byService = type.startsWith("application/problem+json") && body.get("code") instanceof String;
      throw byService ? Problem.ofService(body) : Problem.ofGateway(response.statusCode(), said(body, headers));
    }
    var answer = new Answer(response.statusCode(), body, response.headers().firstValue("lease-state").orElse(""), sent, false);
    if (!request.proves.test(answer)) throw Problem.noAnswer(request.method + ": the answer " + answer.status() + " is none to this request");
    return answer;
  }

  private HttpRequest built(Request request, Map<String, String> headers) throws Exception {
    var address = URI.create(url + request.path);
    var body = request.body == null ? new byte[0] : request.body.getBytes(StandardCharsets.UTF_8);
    if (request.body != null) headers.put("content-type", "application/json");
    if (request.queues) headers.put("prefer", "wait=1");
    headers.putAll(signer.sign(request.method, address, Map.copyOf(headers), body));
    ITS_OWN.forEach(headers::remove);
    for (var value : headers.values())
      if (!HEADER.matcher(value).matches()) throw Problem.notConfigured("the token has a character that no header has");
    var publisher = request.body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body);
    var built = HttpRequest.newBuilder(address).method(request.method, publisher);
    headers.forEach(built::setHeader);
    return built.build();
  }

  /** Returns a gateway's own message, without leaseIds and without what this client sent. */
  private static String said(Map<String, Object> body, Map<String, String> headers) {
    var message = body.getOrDefault("message", body.get("Message"));
    if (!(message instanceof String text)) return "";
    var said = ID.matcher(text.lines().findFirst().orElse("")).replaceAll("…");
    List<String> secrets = new ArrayList<>(headers.values());
    headers.values().forEach(value -> secrets.add(value.replaceFirst("^Bearer ", "")));
    for (var secret : secrets) if (secret.length() >= SECRET_CHARS) said = said.replace(secret, "…");
    return said.substring(0, Math.min(SAID_CHARS, said.length()));
  }
}
