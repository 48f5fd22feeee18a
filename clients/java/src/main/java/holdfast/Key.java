package holdfast;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.text.Normalizer;
import java.util.HexFormat;
import java.util.StringJoiner;
import java.util.regex.Pattern;

/** Makes keys, as {@code key()} of holdfast's SDK does: no two lists of parts share one. */
public final class Key {
  private static final Pattern RULE = Pattern.compile("(?!\\.{1,2}$)[A-Za-z0-9._:~-]{1,200}");
  private static final int WHOLE_CHARS = 200;
  private static final int KEPT_CHARS = 135;

  private Key() {}

  /**
   * Returns {@code ORDER_1231} for {@code "ORDER", 1231}. Other characters than letters, digits, {@code .}, {@code :} and {@code -} are
   * written {@code ~XX}; a key of 200 characters or more is its beginning and a digest.
   *
   * @throws IllegalArgumentException if a part is null, empty, or neither a text nor a whole number
   */
  public static String of(Object... parts) {
    var joined = new StringJoiner("_");
    for (var part : parts) joined.add(encoded(part));
    var whole = joined.toString();
    if (whole.isEmpty()) throw new IllegalArgumentException("key: needs at least one part");
    if (whole.equals(".") || whole.equals("..")) return whole.replace(".", "~2E");
    return whole.length() < WHOLE_CHARS ? whole : whole.substring(0, KEPT_CHARS) + "~" + sha256(whole);
  }

  /** Returns the key. @throws IllegalArgumentException if it can be none */
  static String checked(String key) {
    if (key == null || !RULE.matcher(key).matches())
      throw new IllegalArgumentException("key: " + key + " given; it is 1 to 200 characters of A-Z a-z 0-9 . _ : ~ -, as Key.of makes them");
    return key;
  }

  private static String encoded(Object part) {
    boolean isPart = part instanceof Integer || part instanceof Long || part instanceof CharSequence text && !text.isEmpty();
    if (!isPart) throw new IllegalArgumentException("key: " + part + " given; a part is a whole number or a text that is not empty");
    var encoded = new StringBuilder();
    // As the SDK: one name that was typed in two ways is one key.
    var text = Normalizer.normalize(part.toString(), Normalizer.Form.NFC);
    if (!StandardCharsets.UTF_8.newEncoder().canEncode(text)) throw new IllegalArgumentException("key: a part has half a surrogate pair");
    for (byte each : text.getBytes(StandardCharsets.UTF_8)) {
      char letter = (char) (each & 0xff);
      boolean isKept = letter < 128 && (Character.isLetterOrDigit(letter) || ".:-".indexOf(letter) >= 0);
      encoded.append(isKept ? String.valueOf(letter) : String.format("~%02X", (int) letter));
    }
    return encoded.toString();
  }

  private static String sha256(String text) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
    } catch (NoSuchAlgorithmException everyJavaHasIt) {
      throw new IllegalStateException(everyJavaHasIt);
    }
  }
}
