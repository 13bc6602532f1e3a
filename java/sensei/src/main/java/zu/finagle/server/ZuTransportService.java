package zu.finagle.server;

import com.twitter.finagle.Service;
import com.twitter.util.Future;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import zu.finagle.serialize.ZuSerializer;

/** The handlers of a node by the name of what they handle. */
public class ZuTransportService {
  private final Map<String, RequestHandler<?, ?>> handlers = new ConcurrentHashMap<>();

  /** Answers one kind of request. */
  public interface RequestHandler<Q, A> {
    String getName();

    A handleRequest(Q request);

    ZuSerializer<Q, A> getSerializer();
  }

  public <Q, A> ZuTransportService registerHandler(RequestHandler<Q, A> handler) {
    handlers.put(handler.getName(), handler);
    return this;
  }

  /** What Sensei hands to the server, which finds these handlers through it. */
  public Service<byte[], byte[]> getService() {
    return new Handlers(this);
  }

  /** The handler of that name; IllegalArgumentException where there is none. */
  public RequestHandler<?, ?> handler(String name) {
    RequestHandler<?, ?> found = handlers.get(name);
    if (found == null) {
      throw new IllegalArgumentException("the node has no handler " + name);
    }
    return found;
  }

  static final class Handlers extends Service<byte[], byte[]> {
    final ZuTransportService service;

    Handlers(ZuTransportService service) {
      this.service = service;
    }

    @Override
    public Future<byte[]> apply(byte[] request) {
      throw new UnsupportedOperationException("requests do not come as bytes within one JVM");
    }
  }
}
