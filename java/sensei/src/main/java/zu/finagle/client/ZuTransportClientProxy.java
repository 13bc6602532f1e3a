package zu.finagle.client;

import com.twitter.finagle.Service;
import com.twitter.util.Future;
import java.io.IOException;
import java.net.InetSocketAddress;
import zu.finagle.serialize.ZuSerializer;
import zu.finagle.server.ZuFinagleServer;
import zu.finagle.server.ZuTransportService;
import zu.finagle.server.ZuTransportService.RequestHandler;

/**
 * Calls a handler of a node in the thread that asks. With {@code -Dsearchbench.hop=serialized}
 * request and answer are written to bytes and read again on the way, as they would be between a
 * broker and a node that are two processes; without it they are handed over as they are.
 */
public class ZuTransportClientProxy<Q, A> implements ZuClientProxy<Q, A> {
  private static final boolean SERIALIZED =
      "serialized".equals(System.getProperty("searchbench.hop", "direct"));

  private final String name;
  private final ZuSerializer<Q, A> serializer;

  public ZuTransportClientProxy(String name, ZuSerializer<Q, A> serializer) {
    this.name = name;
    this.serializer = serializer;
  }

  @Override
  public Service<Q, A> wrap(InetSocketAddress node) {
    return new Service<Q, A>() {
      @Override
      public Future<A> apply(Q request) {
        try {
          ZuTransportService service = ZuFinagleServer.at(node);
          if (service == null) {
            throw new IllegalStateException("no node runs at " + node);
          }
          // The names of handlers are one to one with the types of what they handle.
          @SuppressWarnings("unchecked")
          RequestHandler<Q, A> handler = (RequestHandler<Q, A>) service.handler(name);
          return Future.value(SERIALIZED ? serialized(handler, request) : direct(handler, request));
        } catch (IOException | RuntimeException failure) {
          return Future.exception(failure);
        }
      }
    };
  }

  private A direct(RequestHandler<Q, A> handler, Q request) {
    return handler.handleRequest(request);
  }

  private A serialized(RequestHandler<Q, A> handler, Q request) throws IOException {
    Q received = serializer.deserializeRequest(serializer.serializeRequest(request));
    A answer = handler.handleRequest(received);
    return serializer.deserializeResponse(serializer.serializeResponse(answer));
  }
}
