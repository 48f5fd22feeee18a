package holdfast;

import java.net.URI;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Proves who sends a request. It sees the whole request, because a signature of AWS is made of it. It is asked for each try, because tokens
 * and signatures end. What it throws counts as no answer: the request is tried again, and no lock is given up for it.
 */
@FunctionalInterface
public interface Signer {
  /**
   * Returns the headers to add.
   *
   * @param headers those that the request has already
   * @param body empty for a request without one
   */
  Map<String, String> sign(String method, URI address, Map<String, String> headers, byte[] body) throws Exception;

  /** For a service on this machine, which knows no callers. */
  static Signer none() {
    return (method, address, headers, body) -> Map.of();
  }

  /** Sends a JSON Web Token, which is asked for at each try. */
  static Signer bearer(Supplier<String> token) {
    return (method, address, headers, body) -> Map.of("authorization", "Bearer " + token.get());
  }
}
