package holdfast;

import static org.assertj.core.api.Assertions.assertThat;

import example.Reports;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.springframework.boot.SpringApplication;

/** The program of docs/java.md, and that the page has it word for word. */
@EnabledIfEnvironmentVariable(named = "HOLDFAST_URL", matches = ".+", disabledReason = "HOLDFAST_URL names no service: npx holdfast dev")
class PageTest {
  @Test
  void oneOfTwoApplicationsDoesTheJob() {
    var printed = new ByteArrayOutputStream();
    var before = System.out;
    try (var one = SpringApplication.run(Reports.class); var two = SpringApplication.run(Reports.class)) {
      System.setOut(new PrintStream(printed));
      one.getBean(Reports.class).report();
      two.getBean(Reports.class).report();
    } finally {
      System.setOut(before);
    }
    assertThat(printed.toString().split("reported", -1)).hasSize(2);
  }

  @Test
  void isOnThePage() throws Exception {
    var source = Files.readString(Path.of("src/test/java/example/Reports.java"));
    // The page has the tested version of ShedLock too.
    var version = Files.readString(Path.of("pom.xml")).replaceAll("(?s).*<shedlock.version>(.*?)<.*", "<version>$1</version>");
    assertThat(Files.readString(Path.of("../../docs/java.md"))).contains("```java\n" + source + "```", version);
  }
}
