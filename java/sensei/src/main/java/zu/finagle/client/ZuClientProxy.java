package zu.finagle.client;

import com.twitter.finagle.Service;
import java.net.InetSocketAddress;

/** Makes the client of a node. */
public interface ZuClientProxy<Q, A> {
  Service<Q, A> wrap(InetSocketAddress node);
}
