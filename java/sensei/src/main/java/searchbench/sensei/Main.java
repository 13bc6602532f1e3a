package searchbench.sensei;

import com.senseidb.conf.SenseiConfParams;
import com.senseidb.conf.SenseiSchema;
import com.senseidb.conf.SenseiServerBuilder;
import com.senseidb.search.node.SenseiServer;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import org.apache.log4j.PropertyConfigurator;
import org.apache.lucene.search.BooleanQuery;
import org.mortbay.jetty.Connector;
import org.mortbay.jetty.Server;
import org.mortbay.jetty.servlet.ServletHolder;
import org.mortbay.jetty.webapp.WebAppContext;

/**
 * SenseiDB in one JVM: {@code Main CONF}, where the directory CONF has schema.xml,
 * sensei.properties and log4j.properties. Broker and node are Sensei's own; between them are the
 * calls of {@code zu}, and ZooKeeper is not needed. It listens on 127.0.0.1 alone (Sensei's own
 * main listens everywhere) and has an {@link Endpoint} more. Ends with 0 when told to stop, with 2
 * where it cannot start.
 */
final class Main {
  /** An index that is not open by then has a fault of its own. */
  private static final long OPENED_MS = 60_000;

  private Main() {}

  public static void main(String[] argv) {
    if (argv.length != 1) {
      System.err.println("usage: Main CONF, the directory of schema.xml and sensei.properties");
      System.exit(2);
    }
    try {
      start(Path.of(argv[0]));
    } catch (Throwable failure) {
      // Sensei and Zoie throw much; whatever it was, a server that did not start must not linger.
      System.err.println("cannot start: " + failure);
      failure.printStackTrace();
      Runtime.getRuntime().halt(2);
    }
  }

  private static void start(Path conf) throws Exception {
    PropertyConfigurator.configure(conf.resolve("log4j.properties").toString());
    // A query of many words is asked as it is; Lucene would refuse one of more than 1,024.
    BooleanQuery.setMaxClauseCount(Integer.MAX_VALUE);
    File files = conf.toFile();
    SenseiServerBuilder builder = new SenseiServerBuilder(files, null);
    Path data =
        Path.of(builder.getConfiguration().getString(SenseiConfParams.SENSEI_INDEX_DIR));
    Files.createDirectories(data);
    SenseiSchema schema = SenseiSchema.build(SenseiServerBuilder.loadSchema(files));
    SenseiServer server = builder.buildServer();
    Server jetty = builder.buildHttpRestServer();
    for (Connector connector : jetty.getConnectors()) {
      connector.setHost("127.0.0.1");
    }
    Node node = new Node(server, data);
    String numbers = builder.getConfiguration().getString("searchbench.numbers", "");
    Intake intake = new Intake(schema, Set.of(numbers.split(",")));
    Endpoint endpoint = new Endpoint(node, intake, data);
    ((WebAppContext) jetty.getHandler())
        .addServlet(new ServletHolder(endpoint), "/searchbench/*");
    // The JVM's own exit code after SIGTERM would be 143.
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  try {
                    server.setAvailable(false);
                    jetty.stop();
                  } catch (Exception late) {
                    System.err.println("while stopping: " + late);
                  } finally {
                    server.shutdown();
                    Runtime.getRuntime().halt(0);
                  }
                }));
    server.start(true);
    node.refresh(OPENED_MS);
    jetty.start();
    System.out.println(
        "listening on 127.0.0.1:" + jetty.getConnectors()[0].getLocalPort());
    System.out.flush();
  }
}
