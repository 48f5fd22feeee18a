package holdfast;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON: objects as maps, lists, texts, booleans, whole numbers as {@code Long}, others as {@code Double}. */
final class Json {
  private static final int DEPTH = 100;

  private final String text;
  private int at;

  private Json(String text) {
    this.text = text;
  }

  /** Returns the members of an object; empty for anything else, and for what is no JSON. */
  @SuppressWarnings("unchecked")
  static Map<String, Object> object(String text) {
    try {
      var json = new Json(text);
      var value = json.value(0);
      json.blank();
      return json.at == text.length() && value instanceof Map ? (Map<String, Object>) value : Map.of();
    } catch (IllegalArgumentException | IndexOutOfBoundsException noJson) {
      return Map.of();
    }
  }

  /** Returns a text as JSON. */
  static String quoted(String text) {
    var quoted = new StringBuilder("\"");
    for (char each : text.toCharArray()) {
      if (each == '"' || each == '\\' || each < 0x20 || Character.isSurrogate(each)) quoted.append(String.format("\\u%04x", (int) each));
      else quoted.append(each);
    }
    return quoted.append('"').toString();
  }

  private Object value(int depth) {
    if (depth > DEPTH) throw new IllegalArgumentException("nested too deeply");
    blank();
    char first = text.charAt(at);
    if (first == '{') return members(depth);
    if (first == '[') return items(depth);
    if (first == '"') return string();
    for (var word : new String[] {"true", "false", "null"}) {
      if (!text.startsWith(word, at)) continue;
      at += word.length();
      return word.equals("null") ? null : (Object) word.equals("true");
    }
    int start = at;
    while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
    var number = text.substring(start, at);
    return number.matches("-?\\d{1,18}") ? (Object) Long.valueOf(number) : (Object) Double.valueOf(number);
  }

  private Map<String, Object> members(int depth) {
    var members = new LinkedHashMap<String, Object>();
    at++;
    if (next('}')) return members;
    do {
      blank();
      var name = string();
      expect(':');
      members.put(name, value(depth + 1));
    } while (next(','));
    expect('}');
    return members;
  }

  private List<Object> items(int depth) {
    var items = new ArrayList<Object>();
    at++;
    if (next(']')) return items;
    do items.add(value(depth + 1));
    while (next(','));
    expect(']');
    return items;
  }

  private String string() {
    expect('"');
    var string = new StringBuilder();
    for (char each; (each = text.charAt(at++)) != '"'; ) {
      if (each != '\\') {
        string.append(each);
        continue;
      }
      char escaped = text.charAt(at++);
      int place = "bfnrt".indexOf(escaped);
      if (escaped == 'u') string.append((char) Integer.parseInt(text.substring(at, at += 4), 16));
      else string.append(place >= 0 ? "\b\f\n\r\t".charAt(place) : escaped);
    }
    return string.toString();
  }

  private boolean next(char wanted) {
    blank();
    if (at >= text.length() || text.charAt(at) != wanted) return false;
    at++;
    return true;
  }

  private void expect(char wanted) {
    if (!next(wanted)) throw new IllegalArgumentException("no " + wanted);
  }

  private void blank() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
  }
}
