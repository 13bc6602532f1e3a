package searchbench.sensei;

import com.browseengine.bobo.api.BoboSegmentReader;
import com.senseidb.search.node.SenseiCore;
import com.senseidb.search.node.SenseiServer;
import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.lucene.index.IndexNotFoundException;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;
import proj.zoie.api.Zoie;
import proj.zoie.api.ZoieException;
import proj.zoie.api.ZoieMultiReader;
import proj.zoie.impl.indexing.ZoieSystem;

/** One Sensei node with all its partitions: settling it, and what it says of itself. */
final class Node {
  private static final String ABOUT = "/META-INF/maven/com.senseidb/sensei-core/pom.properties";

  private final SenseiServer server;
  private final Path index;

  Node(SenseiServer server, Path index) {
    this.server = server;
    this.index = index;
  }

  Feed feed() {
    return (Feed) server.getDataProvider();
  }

  /** Returns when everything accepted so far is in the index on disk and in what queries see. */
  void settle(long timeoutMs) throws ZoieException {
    Feed feed = feed();
    feed.handOver(timeoutMs);
    String last = feed.last();
    if (last == null) {
      return;
    }
    for (ZoieSystem<BoboSegmentReader, ?> part : parts()) {
      part.syncWithVersion(timeoutMs, last);
      part.flushEvents(timeoutMs);
    }
  }

  /** Returns when queries see the index as it is; else they would see none until freshness is over. */
  void refresh(long timeoutMs) throws ZoieException {
    for (ZoieSystem<BoboSegmentReader, ?> part : parts()) {
      part.flushEvents(timeoutMs);
    }
  }

  /** Documents that a query sees now. */
  long documents() throws IOException {
    long sum = 0;
    for (ZoieSystem<BoboSegmentReader, ?> part : parts()) {
      List<ZoieMultiReader<BoboSegmentReader>> readers = part.getIndexReaders();
      try {
        for (ZoieMultiReader<BoboSegmentReader> reader : readers) {
          sum += reader.numDocs();
        }
      } finally {
        part.returnIndexReaders(readers);
      }
    }
    return sum;
  }

  /** The answer to {@code GET /searchbench/facts}. */
  JSONObject facts() throws IOException, JSONException {
    JSONArray segments = new JSONArray();
    JSONObject levers = new JSONObject();
    for (ZoieSystem<BoboSegmentReader, ?> part : parts()) {
      segments.put(segments(part));
      // The partitions have the same configuration.
      levers.put("freshness_ms", part.getAdminMBean().getFreshness());
      levers.put("batch_delay_ms", part.getAdminMBean().getBatchDelay());
      levers.put("batch_size", part.getAdminMBean().getBatchSize());
    }
    levers.put("parts", parts().size());
    levers.put("heap_mb", Long.parseLong(option("MaxHeapSize")) >> 20);
    levers.put("gc", collector());
    levers.put("hop", System.getProperty("searchbench.hop", "direct"));
    JSONObject answer = new JSONObject();
    answer.put("version", version());
    answer.put("documents", documents());
    answer.put("index_bytes", bytes());
    answer.put("parameters", levers);
    answer.put("segments_by_part", segments);
    answer.put("java", System.getProperty("java.version"));
    answer.put(
        "jvm_arguments",
        new JSONArray(ManagementFactory.getRuntimeMXBean().getInputArguments()));
    return answer;
  }

  private List<ZoieSystem<BoboSegmentReader, ?>> parts() {
    SenseiCore core = server.getSenseiCore();
    List<ZoieSystem<BoboSegmentReader, ?>> found = new ArrayList<>();
    for (int number : core.getPartitions()) {
      Zoie<BoboSegmentReader, ?> zoie =
          (Zoie<BoboSegmentReader, ?>) core.getIndexReaderFactory(number);
      found.add((ZoieSystem<BoboSegmentReader, ?>) zoie);
    }
    return found;
  }

  private static int segments(ZoieSystem<BoboSegmentReader, ?> part) throws IOException {
    try {
      return part.getDiskSegmentCount();
    } catch (IndexNotFoundException nothingWrittenYet) {
      return 0;
    }
  }

  private long bytes() throws IOException {
    try (Stream<Path> files = Files.walk(index)) {
      long sum = 0;
      for (Path file : (Iterable<Path>) files::iterator) {
        try {
          sum += Files.isRegularFile(file) ? Files.size(file) : 0;
        } catch (NoSuchFileException merged) {
          continue;
        }
      }
      return sum;
    }
  }

  private static String collector() {
    List<String> names = new ArrayList<>();
    for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
      names.add(bean.getName());
    }
    return names.contains("Copy")
        ? "serial"
        : names.contains("PS Scavenge")
            ? "parallel"
            : names.contains("G1 Young Generation") ? "g1" : names.toString();
  }

  private static String option(String name) {
    return ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
        .getVMOption(name)
        .getValue();
  }

  private static String version() throws IOException {
    Properties about = new Properties();
    try (var stream = SenseiServer.class.getResourceAsStream(ABOUT)) {
      if (stream == null) {
        throw new IOException("the jar of Sensei does not tell its version: no " + ABOUT);
      }
      about.load(stream);
    }
    return about.getProperty("version");
  }
}
