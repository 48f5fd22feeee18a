package holdfast;

import java.util.function.LongSupplier;

/** A time, by the clock that nobody sets and by the one that goes on while a machine sleeps. */
record Moment(long nanos, long wallMs) {
  static Moment now(LongSupplier wallClock) {
    return new Moment(System.nanoTime(), wallClock.getAsLong());
  }

  /** Returns the ms since an earlier moment: the larger of the two clocks', because one may be set back, and the other stand still. */
  long since(Moment earlier) {
    return Math.max((nanos - earlier.nanos) / 1_000_000, wallMs - earlier.wallMs);
  }
}
