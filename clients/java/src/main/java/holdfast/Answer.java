package holdfast;

import java.util.Map;

/**
 * A success.
 *
 * @param sent when the request that it answers was sent
 * @param repeated true if an earlier try of it may have been carried out
 */
record Answer(int status, Map<String, Object> body, String leaseState, Moment sent, boolean repeated) {
  /** Returns a count of an answer; -1 for anything else. */
  static long count(Map<String, Object> body, String name) {
    return body.get(name) instanceof Long count && count >= 0 ? count : -1;
  }

  long count(String name) {
    return count(body, name);
  }

  boolean isWaiting() {
    return "waiting".equals(body.get("state")) && count("position") >= 0;
  }

  /** True if it is a whole lease of this key and id: only that proves a hold. */
  boolean isLease(String key, String leaseId) {
    boolean isThis = key.equals(body.get("key")) && leaseId.equals(body.get("leaseId"));
    return isThis && count("remainingMs") >= 0 && count("renewAfterMs") >= 0 && count("fencingToken") >= 0 && count("leaseMs") >= 0;
  }
}
