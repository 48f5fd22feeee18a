package example;

import holdfast.HoldfastLockProvider;
import holdfast.Signer;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.spring.annotation.EnableSchedulerLock;
import net.javacrumbs.shedlock.spring.annotation.SchedulerLock;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;

@SpringBootApplication
@EnableScheduling
@EnableSchedulerLock(defaultLockAtMostFor = "10m")
public class Reports {
  public static void main(String[] args) {
    SpringApplication.run(Reports.class, args);
  }

  @Bean
  LockProvider lockProvider() {
    // Reads HOLDFAST_URL; this machine's service knows no callers
    return new HoldfastLockProvider(Signer.none());
  }

  // lockAtLeastFor is longer than the hosts' clocks differ
  @Scheduled(cron = "0 0 6 * * *")
  @SchedulerLock(name = "daily-report", lockAtLeastFor = "1m")
  public void report() {
    System.out.println("reported");
  }
}
