package searchbench.lucene;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicInteger;

/** Accepts connections on loopback, a blocking thread for each. */
final class Server {
  private static final int BACKLOG = 1024;
  private static final int PAUSE_MS = 5;
  private static final int GRACE_MS = 500;

  private final ServerSocket listener;
  private final AtomicInteger busy = new AtomicInteger();

  Server(int port) throws Failure {
    try {
      listener = new ServerSocket();
      byte[] loopback = {127, 0, 0, 1};
      listener.bind(new InetSocketAddress(InetAddress.getByAddress(loopback), port), BACKLOG);
    } catch (IOException taken) {
      throw Failure.error("cannot listen on 127.0.0.1:%d: %s", port, taken.getMessage());
    }
  }

  int port() {
    return listener.getLocalPort();
  }

  /** Serves until the process ends. */
  void serve(Service service) {
    while (true) {
      try {
        Socket socket = listener.accept();
        // A small reply must leave at once, not when the peer has acknowledged the one before.
        socket.setTcpNoDelay(true);
        Thread thread = new Thread(new Connection(socket, service, busy), "connection");
        thread.setDaemon(true);
        thread.start();
      } catch (IOException gone) {
        // Out of descriptors, or the client has gone already: the others go on.
        pause();
      }
    }
  }

  /** Requests in hand may end for half a second; nothing more is committed. */
  void drain() {
    long until = System.nanoTime() + GRACE_MS * 1_000_000L;
    while (busy.get() > 0 && System.nanoTime() < until) {
      pause();
    }
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException ignored) {
      Thread.currentThread().interrupt();
    }
  }
}
