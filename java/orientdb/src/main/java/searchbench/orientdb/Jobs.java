package searchbench.orientdb;

import com.orientechnologies.orient.core.db.ODatabaseDocumentInternal;
import com.orientechnologies.orient.server.config.OServerCommandConfiguration;
import com.orientechnologies.orient.server.network.protocol.http.OHttpRequest;
import com.orientechnologies.orient.server.network.protocol.http.OHttpResponse;
import com.orientechnologies.orient.server.network.protocol.http.command.OServerCommandAuthenticatedServerAbstract;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Backup and restore over HTTP, which the REST interface of OrientDB lacks.
 *
 * <p>It calls what the server's own automatic backup and its console call.
 *
 * <pre>
 * POST job/backup/DATABASE/LEVEL/BUFFER    into FOLDER/DATABASE.zip
 * POST job/restore/DATABASE/NEW            from FOLDER/DATABASE.zip into a new database
 * </pre>
 *
 * FOLDER is the system property {@code searchbench.backup}.
 */
public final class Jobs extends OServerCommandAuthenticatedServerAbstract {
  private static final String[] NAMES = {"POST|job/*"};

  public Jobs(OServerCommandConfiguration configuration) {
    super("server.info");
  }

  @Override
  public boolean execute(OHttpRequest request, OHttpResponse response) throws Exception {
    String[] part =
        checkSyntax(request.getUrl(), 4, "Syntax error: job/backup/DATABASE/LEVEL/BUFFER");
    Path folder = Files.createDirectories(Path.of(System.getProperty("searchbench.backup")));
    Path archive = folder.resolve(part[2] + ".zip");
    AtomicInteger messages = new AtomicInteger();
    if (part[1].equals("backup")) {
      int level = Integer.parseInt(part[3]);
      int buffer = Integer.parseInt(part[4]);
      try (ODatabaseDocumentInternal database = server.openDatabase(part[2]);
          OutputStream out = Files.newOutputStream(archive)) {
        database.backup(out, null, null, message -> messages.incrementAndGet(), level, buffer);
      }
    } else if (part[1].equals("restore")) {
      try (InputStream in = Files.newInputStream(archive)) {
        server
            .getDatabases()
            .restore(part[3], in, null, null, message -> messages.incrementAndGet());
      }
    } else {
      throw new IllegalArgumentException("there is no job " + part[1]);
    }
    String told = "{\"result\":[{\"messages\":" + messages.get() + "}]}";
    response.send(200, "OK", "application/json", told, null);
    return false;
  }

  @Override
  public String[] getNames() {
    return NAMES.clone();
  }
}
