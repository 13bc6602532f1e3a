package zu.finagle.server;

import com.twitter.common.zookeeper.Group.JoinException;
import com.twitter.common.zookeeper.ServerSet.UpdateException;
import com.twitter.finagle.Service;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import zu.core.cluster.ZuCluster;

/** A node that is reached by calls within the JVM; it opens no socket. */
public class ZuFinagleServer {
  private static final Map<InetSocketAddress, ZuTransportService> RUNNING =
      new ConcurrentHashMap<>();

  private final InetSocketAddress address;
  private final ZuTransportService service;

  public ZuFinagleServer(String name, InetSocketAddress address, Service<byte[], byte[]> handlers) {
    this.address = address;
    this.service = ((ZuTransportService.Handlers) handlers).service;
  }

  /** The handlers of the node that runs at {@code address}; null where none does. */
  public static ZuTransportService at(InetSocketAddress address) {
    return RUNNING.get(address);
  }

  public void start() {
    RUNNING.put(address, service);
  }

  public void shutdown() {
    RUNNING.remove(address);
  }

  public void joinCluster(ZuCluster cluster, Set<Integer> partitions)
      throws JoinException, InterruptedException {
    cluster.join(address, partitions);
  }

  public void leaveCluster(ZuCluster cluster) throws UpdateException {
    cluster.leave(address);
  }
}
