package searchbench.lucene;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.lucene.search.IndexSearcher;

/**
 * Lucene behind the framed protocol of FORMATS.md: {@code Host --port P --data DIR [--name value
 * ...]}. Ends with 0 when told to stop, with 2 where an option is wrong or it cannot start.
 */
final class Host {
  private Host() {}

  public static void main(String[] argv) {
    try {
      start(argv);
    } catch (Failure failure) {
      System.err.println(failure.getMessage());
      System.exit(2);
    } catch (IOException | RuntimeException failure) {
      System.err.println("cannot start: " + failure);
      System.exit(2);
    }
  }

  private static void start(String[] argv) throws IOException, Failure {
    Options options = Options.parse(argv);
    if (options.text("data").isEmpty()) {
      throw Failure.error("--data DIR is missing: the directory of the index");
    }
    long heapMb = Runtime.getRuntime().maxMemory() >> 20;
    int indexingMb = options.number("indexing_memory_mb");
    if (indexingMb >= heapMb) {
      throw Failure.error(
          "--indexing_memory_mb %d does not fit into a heap of %d MB (heap_mb)",
          indexingMb, heapMb);
    }
    Path data = Path.of(options.text("data"));
    try {
      Files.createDirectories(data);
    } catch (IOException failed) {
      throw Failure.error("cannot make the directory %s: %s", data, failed.getMessage());
    }
    // A query of many words is asked as it is; Lucene would refuse one of more than 1,024.
    IndexSearcher.setMaxClauseCount(Integer.MAX_VALUE);
    Server server = new Server(options.number("port"));
    Service service = new Service(data, options);
    // The JVM's own exit code after SIGTERM would be 143.
    Thread ending =
        new Thread(
            () -> {
              server.drain();
              Runtime.getRuntime().halt(0);
            });
    Runtime.getRuntime().addShutdownHook(ending);
    System.out.println("listening on 127.0.0.1:" + server.port());
    System.out.flush();
    server.serve(service);
  }
}
