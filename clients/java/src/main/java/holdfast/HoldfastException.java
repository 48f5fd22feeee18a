package holdfast;

/** A request that the service refused, or that nobody answered. A lock that is held is no exception. */
public class HoldfastException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final String code;
  private final boolean definite;

  HoldfastException(String code, boolean definite, String message) {
    super(message);
    this.code = code;
    this.definite = definite;
  }

  /** Returns the code of the refusal, as docs/errors.md has them; {@code unavailable} if nobody answered. */
  public String code() {
    return code;
  }

  /** True if the operation certainly did not happen. */
  public boolean definite() {
    return definite;
  }
}
