package searchbench.lucene;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.lucene.util.Version;

/** What the host says of itself; the levers as they really are, those of the JVM from the JVM. */
final class Facts {
  private static final Map<String, String> COLLECTORS =
      Map.of("serial", "UseSerialGC", "parallel", "UseParallelGC", "g1", "UseG1GC");

  private Facts() {}

  /** {@code index}: null where there is none yet. */
  static Map<String, Object> of(Path data, Options options, Index index) throws IOException {
    HotSpotDiagnosticMXBean jvm =
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
    Map<String, Object> parameters = options.parameters();
    parameters.put(
        "heap_mb", Long.parseLong(jvm.getVMOption("MaxHeapSize").getValue()) / (1 << 20));
    parameters.put("gc", collector(jvm));
    Map<String, Object> extra = new LinkedHashMap<>();
    extra.put("java", System.getProperty("java.vm.name") + " " + Runtime.version());
    extra.put("jvm_arguments", ManagementFactory.getRuntimeMXBean().getInputArguments());
    int documents = 0;
    if (index != null) {
      View view = index.acquire();
      try {
        documents = view.documents();
        extra.put("segments_by_part", view.parts.stream().map(List::size).toList());
      } finally {
        Index.release(view);
      }
    }
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("engine", "lucene");
    facts.put("version", Version.LATEST.toString());
    facts.put("documents", documents);
    facts.put("index_bytes", bytesOnDisk(data));
    facts.put("parameters", parameters);
    facts.put("extra", extra);
    return facts;
  }

  private static String collector(HotSpotDiagnosticMXBean jvm) {
    for (Map.Entry<String, String> one : COLLECTORS.entrySet()) {
      if (jvm.getVMOption(one.getValue()).getValue().equals("true")) {
        return one.getKey();
      }
    }
    return "another";
  }

  private static long bytesOnDisk(Path data) throws IOException {
    long bytes = 0;
    List<Path> files;
    try (Stream<Path> all = Files.walk(data)) {
      files = all.filter(Files::isRegularFile).toList();
    }
    for (Path file : files) {
      try {
        bytes += Files.size(file);
      } catch (NoSuchFileException merged) {
        continue;
      }
    }
    return bytes;
  }
}
