package searchbench.lucene;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Frames of the protocol in FORMATS.md: reading requests, writing replies. */
final class Frames {
  static final int OK = 0;
  static final int ERROR = 1;
  static final int UNSUPPORTED = 2;

  static final int FACTS = 1;
  static final int CREATE = 2;
  static final int BATCH = 3;
  static final int SETTLE = 4;
  static final int QUERY = 5;
  static final int ANALYSE = 6;
  static final int COMMIT = 7;
  static final int REPLACE = 8;
  static final int DELETE = 9;

  private static final int REQUEST_HEADER_BYTES = 8;
  private static final int REPLY_HEADER_BYTES = 16;
  private static final long MAX_PAYLOAD_BYTES = 1L << 30;
  private static final int BUFFER_BYTES = 64 << 10;

  private Frames() {}

  /** What is not a request of this protocol: answered with its sentence, then closed. */
  static final class Garbage extends Exception {
    private static final long serialVersionUID = 1L;

    Garbage(String sentence) {
      super(sentence, null, false, false);
    }
  }

  /** Requests as they come in. Memory grows with what arrives, not with what a header promises. */
  static final class Requests {
    private final InputStream from;
    private final long mostBytes;
    private byte[] bytes = new byte[BUFFER_BYTES];
    private int start;
    private int end;

    /** The verb and the payload of the request last read. */
    int verb;

    int at;
    int length;

    /** {@code heapBytes}: a payload must fit into a quarter of the memory that there is. */
    Requests(InputStream from, long heapBytes) {
      this.from = from;
      this.mostBytes = Math.min(MAX_PAYLOAD_BYTES, heapBytes / 4);
    }

    byte[] bytes() {
      return bytes;
    }

    /** Whether a whole request is here; then verb, at and length are its. */
    boolean parse() throws Garbage {
      if (end - start < REQUEST_HEADER_BYTES) {
        return false;
      }
      ByteBuffer header = ByteBuffer.wrap(bytes, start, REQUEST_HEADER_BYTES);
      long promised = header.order(ByteOrder.LITTLE_ENDIAN).getInt() & 0xffff_ffffL;
      int asked = header.get() & 0xff;
      if ((header.get() | header.get() | header.get()) != 0) {
        throw new Garbage("bytes 5 to 7 of a request are zero");
      }
      if (asked < FACTS || asked > DELETE) {
        throw new Garbage("there is no verb " + asked + "; they are 1 to 9");
      }
      if (promised > MAX_PAYLOAD_BYTES) {
        throw new Garbage("a payload of " + promised + " bytes is above 1 GiB");
      }
      if (promised > mostBytes) {
        throw new Garbage(
            "a payload of "
                + promised
                + " bytes is more than a quarter of the heap; raise heap_mb or send smaller batches");
      }
      if (end - start < REQUEST_HEADER_BYTES + promised) {
        return false;
      }
      verb = asked;
      at = start + REQUEST_HEADER_BYTES;
      length = (int) promised;
      start = at + length;
      return true;
    }

    /** Reads once; false at the end of the stream. A payload parsed before is invalid after it. */
    boolean fill() throws IOException {
      if (start == end) {
        start = 0;
        end = 0;
        if (bytes.length > 64 * BUFFER_BYTES) {
          bytes = new byte[BUFFER_BYTES];
        }
      }
      if (end == bytes.length) {
        if (start > 0) {
          System.arraycopy(bytes, start, bytes, 0, end - start);
          end -= start;
          start = 0;
        }
        if (end + BUFFER_BYTES / 2 > bytes.length) {
          bytes = Arrays.copyOf(bytes, (int) Math.min(2L * bytes.length, Integer.MAX_VALUE - 8));
        }
      }
      int count = from.read(bytes, end, bytes.length - end);
      end += Math.max(count, 0);
      return count >= 0;
    }
  }

  /** Replies that wait to be sent together. */
  static final class Replies extends ByteArrayOutputStream {
    private static final int KEPT_BYTES = 256 << 10;

    private int begun;

    Replies() {
      super(KEPT_BYTES / 4);
    }

    /** Begins a reply; its payload is then written to this stream. */
    void begin() {
      begun = count;
      writeBytes(new byte[REPLY_HEADER_BYTES]);
    }

    /** Throws away the payload written since {@link #begin}. */
    void restart() {
      count = begun + REPLY_HEADER_BYTES;
    }

    /** Completes the reply begun last. */
    void finish(int status, long hostNs) {
      ByteBuffer.wrap(buf, begun, REPLY_HEADER_BYTES)
          .order(ByteOrder.LITTLE_ENDIAN)
          .putInt(count - begun - REPLY_HEADER_BYTES)
          .putInt(status)
          .putLong(hostNs);
    }

    /** Whether so much waits that it should leave now. */
    boolean full() {
      return count >= KEPT_BYTES;
    }

    /** Sends all that waits. */
    void sendTo(OutputStream out) throws IOException {
      if (count > 0) {
        out.write(buf, 0, count);
        if (buf.length > 16 * KEPT_BYTES) {
          buf = new byte[KEPT_BYTES];
        }
        reset();
      }
    }
  }
}
