package searchbench.sensei;

import com.senseidb.conf.SenseiConfParams;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import org.json.JSONObject;
import proj.zoie.api.DataConsumer.DataEvent;
import proj.zoie.api.ZoieException;
import proj.zoie.impl.indexing.StreamDataProvider;

/**
 * The stream that Sensei takes its documents from: what comes over HTTP, in order. The version of a
 * document is its number in the stream, from 1, and goes on where the index on disk ends.
 */
final class Feed extends StreamDataProvider<JSONObject> {
  /** How many documents may wait; whoever brings more has to wait. */
  private static final int ROOM = 10_000;

  private static final int IDLE_MS = 5;

  private final BlockingQueue<JSONObject> waiting = new ArrayBlockingQueue<>(ROOM);
  private long taken;
  private long accepted;

  Feed(String last) {
    super(SenseiConfParams.DEFAULT_VERSION_LONG_COMPARATOR);
    setStartingOffset(last);
    setRetryTime(IDLE_MS);
  }

  /** One more document; waits while the indexer is behind. */
  synchronized void accept(JSONObject document) throws InterruptedException {
    waiting.put(document);
    accepted++;
  }

  /** The version of the last document that was accepted; null before there is any. */
  synchronized String last() {
    return accepted == 0 ? null : String.valueOf(accepted);
  }

  /** Returns when Sensei's indexers have been handed all that was accepted. */
  void handOver(long timeoutMs) throws ZoieException {
    String last = last();
    if (last != null) {
      syncWithVersion(timeoutMs, last);
    }
  }

  @Override
  public DataEvent<JSONObject> next() {
    JSONObject document = waiting.poll();
    return document == null ? null : new DataEvent<>(document, String.valueOf(++taken));
  }

  @Override
  public void setStartingOffset(String version) {
    taken = version == null || version.isEmpty() ? 0 : Long.parseLong(version);
    accepted = taken;
  }

  @Override
  public void reset() {
    // There is nothing to read again: what was not indexed when the server ended is lost.
  }
}
