package holdfast;

import java.util.Map;
import java.util.Set;

/** The answer in place of a success: the service's refusal, a gateway's, or nothing. */
final class Problem extends Exception {
  private static final long serialVersionUID = 1;

  /** The refusals that a later time or a new id can resolve. */
  private static final Set<String> WAITABLE = Set.of("locked", "queue-full", "key-full", "lease-over", "lease-id-time");
  /** The codes of what a gateway answers by itself, before the service. */
  private static final Map<Integer, String> GATEWAY =
      Map.of(401, "not-configured", 403, "forbidden", 404, "not-found", 413, "too-large", 429, "throttled");

  final String code;
  final boolean byService;
  final String retry;
  final transient Map<String, Object> body;
  boolean definite;

  private Problem(String code, String retry, boolean definite, Map<String, Object> body, String message) {
    super(code + ": " + message);
    this.code = code;
    this.retry = retry;
    this.definite = definite;
    this.byService = !body.isEmpty();
    this.body = body;
  }

  /** The service's own, by its problem document. */
  static Problem ofService(Map<String, Object> body) {
    var isDefinite = Boolean.TRUE.equals(body.get("definite"));
    return new Problem((String) body.get("code"), String.valueOf(body.get("retry")), isDefinite, body, String.valueOf(body.get("detail")));
  }

  static Problem ofGateway(int status, String said) {
    var code = GATEWAY.getOrDefault(status, "unavailable");
    var retry = status == 429 ? "later" : GATEWAY.containsKey(status) ? "never" : "same";
    var message = "a gateway answered " + status + " before the service was reached" + (said.isEmpty() ? "" : ": " + said);
    return new Problem(code, retry, GATEWAY.containsKey(status), Map.of(), message);
  }

  static Problem noAnswer(String message) {
    return new Problem("unavailable", "same", false, Map.of(), message);
  }

  static Problem notConfigured(String message) {
    return new Problem("not-configured", "never", true, Map.of(), message);
  }

  static Problem closed(String key) {
    return new Problem("closed", "never", true, Map.of(), key + ": the client is closed");
  }

  /** The lease ends too soon to be of use, or the wait for it is over. */
  static Problem locked(String message) {
    return new Problem("locked", "later", true, Map.of(), message);
  }

  /** True if the same request may be answered otherwise. */
  boolean again() {
    return retry.equals("same") || code.equals("throttled") || code.equals("clock-skew");
  }

  /** True if it says nothing of the service's: what must be done is asked again. */
  boolean isUnsettled() {
    return again() || !byService;
  }

  boolean isBusy() {
    return code.equals("locked");
  }

  boolean isWaitable() {
    return WAITABLE.contains(code);
  }

  boolean isLost() {
    return byService && code.equals("lease-lost");
  }

  long retryAfterMs() {
    return Math.max(0, Answer.count(body, "retryAfterMs"));
  }

  HoldfastException asException() {
    return new HoldfastException(code, definite, getMessage());
  }
}
