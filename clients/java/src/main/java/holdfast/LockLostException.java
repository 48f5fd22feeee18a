package holdfast;

/** A lock that is held no more: its lease ended, or an operator broke it. Another may have had it since, so undo what it guarded. */
public final class LockLostException extends HoldfastException {
  private static final long serialVersionUID = 1;

  LockLostException(String message) {
    super("lease-lost", true, message);
  }
}
