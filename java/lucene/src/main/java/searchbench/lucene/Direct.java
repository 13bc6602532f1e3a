package searchbench.lucene;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.lucene.search.CollectorManager;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TopScoreDocCollector;
import org.apache.lucene.search.TopScoreDocCollectorManager;

/**
 * Lucene called directly, without the wire: what the host's own cost is measured against. {@code
 * Direct QUERIES WARMUP_S SECONDS --data DIR [--name value ...]} puts the query payloads of a file,
 * a line each, to Lucene's own searcher and collector, by relevance alone, and prints as JSON how
 * many it answered after the warm-up, in how many seconds and CPU seconds, and the sum of the totals
 * of all queries.
 */
final class Direct {
  private record Asked(Query query, int best) {}

  /** The best and their exact total, of a searcher that uses one thread. */
  private record Best(int size)
      implements CollectorManager<TopScoreDocCollector, TopScoreDocCollector> {
    @Override
    public TopScoreDocCollector newCollector() {
      return new TopScoreDocCollectorManager(size, Integer.MAX_VALUE).newCollector();
    }

    @Override
    public TopScoreDocCollector reduce(Collection<TopScoreDocCollector> collectors) {
      return collectors.iterator().next();
    }
  }

  private final View view;
  private final List<Asked> queries = new ArrayList<>();
  private long answered;
  private long totals;
  private long letters;

  private Direct(Index index, Path file) throws IOException, Failure {
    view = index.acquire();
    for (String line : Files.readAllLines(file)) {
      byte[] bytes = line.getBytes(StandardCharsets.UTF_8);
      Ask ask = Json.read(bytes, 0, bytes.length, Ask.class, "query");
      Query query = new QueryCompiler(index.schema).compile(ask);
      queries.add(new Asked(query, ask.offset() + ask.limit()));
    }
  }

  public static void main(String[] argv) throws IOException, Failure {
    Options options = Options.parse(Arrays.copyOfRange(argv, 3, argv.length));
    Index index = Index.open(Path.of(options.text("data")), options, new Analysis());
    Direct direct = new Direct(index, Path.of(argv[0]));
    direct.ask(Double.parseDouble(argv[1]));
    Map<String, Object> found = direct.ask(Double.parseDouble(argv[2]));
    System.out.println(Json.MAPPER.writeValueAsString(found));
  }

  /** Whole rounds of all queries until the time is up. */
  private Map<String, Object> ask(double seconds) throws IOException {
    answered = 0;
    OperatingSystemMXBean process =
        ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    long start = System.nanoTime();
    long used = process.getProcessCpuTime();
    double took;
    do {
      totals = 0;
      for (Asked one : queries) {
        ask(one);
      }
      took = (System.nanoTime() - start) / 1e9;
    } while (took < seconds);
    double cpu = (process.getProcessCpuTime() - used) / 1e9;
    return Map.of(
        "answered", answered, "s", took, "cpu_s", cpu, "totals", totals, "letters", letters);
  }

  private void ask(Asked one) throws IOException {
    TopScoreDocCollector found = view.searcher.search(one.query, new Best(one.best));
    for (ScoreDoc hit : found.topDocs().scoreDocs) {
      letters += view.id(hit.doc).length();
    }
    totals += found.getTotalHits();
    answered++;
  }
}
