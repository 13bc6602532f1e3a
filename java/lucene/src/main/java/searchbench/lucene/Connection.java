package searchbench.lucene;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicInteger;

/** One connection: requests in, replies out, in order, on a thread of its own. */
final class Connection implements Runnable {
  private static final int WASTE_MS = 200;
  private static final long WASTE_NS = 1_000_000_000L;

  private final Socket socket;
  private final Service service;

  /** Requests being handled now, on all connections. */
  private final AtomicInteger busy;

  Connection(Socket socket, Service service, AtomicInteger busy) {
    this.socket = socket;
    this.service = service;
    this.busy = busy;
  }

  @Override
  public void run() {
    // A client that goes away, even within a request, ends its own thread and nothing else.
    try (socket;
        Service.Session session = service.session()) {
      converse(session);
    } catch (IOException gone) {
      return;
    }
  }

  private void converse(Service.Session session) throws IOException {
    InputStream in = socket.getInputStream();
    OutputStream out = socket.getOutputStream();
    Frames.Requests requests = new Frames.Requests(in, Runtime.getRuntime().maxMemory());
    Frames.Replies replies = new Frames.Replies();
    while (true) {
      try {
        while (!requests.parse()) {
          replies.sendTo(out);
          if (!requests.fill()) {
            return;
          }
        }
      } catch (Frames.Garbage garbage) {
        replies.begin();
        Service.refuse(replies, garbage.getMessage());
        replies.finish(Frames.ERROR, 0);
        replies.sendTo(out);
        closeAfterReply(in);
        return;
      }
      // For a request sent ahead this is when its turn has come.
      long start = System.nanoTime();
      busy.incrementAndGet();
      try {
        replies.begin();
        int status = session.answer(requests, replies);
        replies.finish(status, System.nanoTime() - start);
      } finally {
        busy.decrementAndGet();
      }
      if (replies.full()) {
        replies.sendTo(out);
      }
    }
  }

  /** Closing with unread bytes would reset the connection and take the reply with it. */
  private void closeAfterReply(InputStream in) throws IOException {
    socket.shutdownOutput();
    socket.setSoTimeout(WASTE_MS);
    long until = System.nanoTime() + WASTE_NS;
    byte[] waste = new byte[16 << 10];
    while (System.nanoTime() < until && in.read(waste) >= 0) {
      // Thrown away.
    }
  }
}
