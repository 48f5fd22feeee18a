package holdfast;

import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import sun.misc.Signal;

/** The driver of this client for the suite of scenes (docs/write-a-client.md). It has locks and keys; runs and limits it can't. */
final class Driver {
  private static final String TOKEN = "scripted-token-0123456789";

  private final Map<String, HoldfastLock> held = new HashMap<>();
  private HoldfastLocks locks;
  private volatile String token = TOKEN;
  private volatile long shiftMs;

  public static void main(String[] args) throws Exception {
    warmUp();
    var driver = new Driver();
    var main = Thread.currentThread();
    Signal.handle(new Signal("INT"), signal -> main.interrupt());
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line; (line = lines.readLine()) != null; ) {
      System.out.println(driver.answered(line));
      System.out.flush();
      Thread.interrupted();
    }
  }

  /** Loads the classes of a request, which takes seconds on a busy machine, before any lease runs. */
  private static void warmUp() throws Exception {
    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/", exchange -> {
      exchange.getResponseHeaders().set("content-type", "application/problem+json");
      exchange.sendResponseHeaders(423, 0);
      exchange.getResponseBody().write("{\"code\":\"locked\",\"definite\":true,\"retry\":\"later\"}".getBytes(StandardCharsets.UTF_8));
      exchange.close();
    });
    server.start();
    new HoldfastLocks(URI.create("http://127.0.0.1:" + server.getAddress().getPort()), Signer.none()).tryLock("warm", Duration.ofSeconds(1));
    server.stop(0);
  }

  private String answered(String line) {
    try {
      var words = new ArrayList<>(List.of(line.split(" ")));
      var verb = words.remove(0);
      var name = words.isEmpty() || verb.equals("key") ? "" : decoded(words.remove(0));
      return carriedOut(verb, name, words, line);
    } catch (InterruptedException interrupted) {
      return "interrupted";
    } catch (LockLostException lost) {
      return "lost";
    } catch (HoldfastException error) {
      return "refused " + error.code() + (error.definite() ? " definite " : " perhaps ") + said(error);
    } catch (IllegalArgumentException error) {
      return "refused invalid-request definite " + said(error);
    } catch (Exception error) {
      return "refused " + error.getClass().getSimpleName() + " perhaps " + said(error);
    }
  }

  private String carriedOut(String verb, String name, List<String> words, String line) throws InterruptedException {
    switch (verb) {
      case "open" -> {
        token = TOKEN;
        shiftMs = 0;
        held.clear();
        var signer = words.contains("token") ? Signer.bearer(this::token) : Signer.none();
        locks = new HoldfastLocks(URI.create(name), signer, () -> System.currentTimeMillis() + shiftMs);
      }
      case "token" -> token = name.equals("fails") ? null : name;
      case "clock" -> shiftMs = ms(name);
      case "acquire" -> {
        if (words.contains("shared") || words.contains("limit")) return "can't";
        var wait = Duration.ofMillis(ms(words.get(words.indexOf("wait") + 1)));
        var lock = locks.lock(name, Duration.ofMillis(ms(words.get(0))), wait);
        if (lock.isEmpty()) return "busy";
        held.put(name, lock.get());
        return "granted " + lock.get().fencingToken();
      }
      case "held?" -> {
        return held.containsKey(name) && held.get(name).isHeld() ? "yes" : "no";
      }
      case "lost?" -> {
        return held.containsKey(name) && held.get(name).isLost() ? "yes" : "no";
      }
      case "extend" -> held.get(name).renew(Duration.ofMillis(ms(words.get(0))));
      case "release" -> {
        held.get(name).release();
        return "released";
      }
      case "key" -> {
        var parts = (List<?>) Json.object("{\"parts\":" + line.substring(4) + "}").get("parts");
        return parts.stream().anyMatch(Double.class::isInstance) ? "can't" : "key " + Key.of(parts.toArray());
      }
      case "close" -> locks.close();
      default -> {
        return "can't";
      }
    }
    return "ok";
  }

  private String token() {
    if (token == null) throw new IllegalStateException("the token's server is gone");
    return token;
  }

  private static String said(Exception error) {
    return String.valueOf(error.getMessage()).replaceAll("\\s+", " ");
  }

  private static long ms(String seconds) {
    return Math.round(Double.parseDouble(seconds.replaceAll("s$", "")) * 1000);
  }

  private static String decoded(String word) {
    return URLDecoder.decode(word.replace("+", "%2B"), StandardCharsets.UTF_8);
  }
}
