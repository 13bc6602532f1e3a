package zu.core.cluster;

import com.twitter.common.net.pool.DynamicHostSet.MonitorException;
import com.twitter.common.zookeeper.ServerSet.UpdateException;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The cluster within one JVM, in place of the one in ZooKeeper: a list of who serves which
 * partition, and listeners who are told of each change. The addresses and the timeout are not used.
 */
public class ZuCluster {
  private final String name;
  private final List<ZuClusterEventListener> listeners = new CopyOnWriteArrayList<>();
  private Map<Integer, List<InetSocketAddress>> partitions = Map.of();

  /** Declared to throw because Sensei catches it. */
  public ZuCluster(Iterable<InetSocketAddress> unused, String name, int timeout)
      throws MonitorException {
    this.name = name.startsWith("/") ? name : "/" + name;
  }

  public ZuCluster(String host, int port, String name, int timeout) throws MonitorException {
    this(List.of(), name, timeout);
  }

  public String getClusterId() {
    return name;
  }

  public synchronized void addClusterEventListener(ZuClusterEventListener listener) {
    listeners.add(listener);
    listener.clusterChanged(partitions);
  }

  /** {@code node} serves these partitions from now on. */
  public synchronized void join(InetSocketAddress node, Set<Integer> served) {
    Map<Integer, List<InetSocketAddress>> now = new HashMap<>(partitions);
    served.forEach(partition -> now.put(partition, List.of(node)));
    tell(now);
  }

  /** {@code node} serves nothing any more. */
  public synchronized void leave(InetSocketAddress node) throws UpdateException {
    Map<Integer, List<InetSocketAddress>> now = new HashMap<>(partitions);
    now.values().removeIf(nodes -> nodes.contains(node));
    tell(now);
    listeners.forEach(listener -> listener.nodesRemoved(new HashSet<>(Set.of(node))));
  }

  public void shutdown() {
    // There is no connection to close.
  }

  private void tell(Map<Integer, List<InetSocketAddress>> now) {
    partitions = now;
    listeners.forEach(listener -> listener.clusterChanged(now));
  }
}
