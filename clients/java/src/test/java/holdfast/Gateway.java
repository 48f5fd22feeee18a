package holdfast;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;

/** A gateway before a service: it answers the next requests of a method by itself, and passes the others on. */
final class Gateway implements AutoCloseable {
  record Seen(String method, String path, Map<String, List<String>> headers, byte[] body) {}

  final List<Seen> seen = new CopyOnWriteArrayList<>();
  private final Map<String, ConcurrentLinkedQueue<Integer>> refusals = new ConcurrentHashMap<>();
  private final HttpClient behind = HttpClient.newHttpClient();
  private final HttpServer server;

  Gateway(String service) throws IOException {
    server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/", exchange -> {
      var method = exchange.getRequestMethod();
      var path = exchange.getRequestURI().toString();
      var body = exchange.getRequestBody().readAllBytes();
      seen.add(new Seen(method, path, Map.copyOf(exchange.getRequestHeaders()), body));
      var refused = refusals.getOrDefault(method, new ConcurrentLinkedQueue<>()).poll();
      try {
        if (refused != null) {
          exchange.sendResponseHeaders(refused, -1);
          return;
        }
        var passed = HttpRequest.newBuilder(URI.create(service + path)).method(method, HttpRequest.BodyPublishers.ofByteArray(body));
        if (body.length > 0) passed.header("content-type", "application/json");
        var answer = behind.send(passed.build(), HttpResponse.BodyHandlers.ofByteArray());
        answer.headers().map().forEach((name, values) -> {
          if (!List.of("content-length", "transfer-encoding", "connection").contains(name)) exchange.getResponseHeaders().put(name, values);
        });
        exchange.sendResponseHeaders(answer.statusCode(), answer.body().length == 0 ? -1 : answer.body().length);
        exchange.getResponseBody().write(answer.body());
      } catch (InterruptedException stopped) {
        Thread.currentThread().interrupt();
      } finally {
        exchange.close();
      }
    });
    server.start();
  }

  URI url() {
    return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
  }

  /** Answers the next requests of this method so. */
  void refuse(String method, Integer... statuses) {
    refusals.put(method, new ConcurrentLinkedQueue<>(List.of(statuses)));
  }

  @Override
  public void close() {
    server.stop(0);
  }
}
