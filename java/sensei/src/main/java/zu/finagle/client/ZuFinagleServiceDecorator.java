package zu.finagle.client;

import com.twitter.finagle.Service;
import java.net.InetSocketAddress;
import java.util.Set;
import zu.core.cluster.routing.InetSocketAddressDecorator;

/** From the address of a node to its client. */
public class ZuFinagleServiceDecorator<Q, A> implements InetSocketAddressDecorator<Service<Q, A>> {
  private final ZuClientProxy<Q, A> proxy;

  public ZuFinagleServiceDecorator(ZuClientProxy<Q, A> proxy) {
    this.proxy = proxy;
  }

  @Override
  public Service<Q, A> decorate(InetSocketAddress node) {
    return proxy.wrap(node);
  }

  @Override
  public void cleanup(Set<Service<Q, A>> gone) {
    // A call within the JVM leaves nothing behind.
  }
}
