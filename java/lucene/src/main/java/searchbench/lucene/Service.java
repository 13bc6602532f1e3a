package searchbench.lucene;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.apache.lucene.search.Query;

/** What the verbs of the protocol do. */
final class Service {
  /** The payload of analyse. */
  private record Text(String text) {}

  private final Path data;
  private final Options options;
  private final Analysis analysis = new Analysis();
  private volatile Index index;

  /** Opens what is in {@code data}, if anything. */
  Service(Path data, Options options) throws IOException, Failure {
    this.data = data;
    this.options = options;
    this.index = Index.open(data, options, analysis);
  }

  Session session() {
    return new Session();
  }

  private Index opened() throws Failure {
    Index now = index;
    if (now == null) {
      throw Failure.error("there is no index yet: create comes first");
    }
    return now;
  }

  private synchronized void create(Schema schema) throws IOException, Failure {
    if (index != null) {
      throw Failure.error("there is an index in %s already", data);
    }
    index = Index.create(data, schema, options, analysis);
  }

  /** Writes {@code {"error": sentence}}. */
  static void refuse(Frames.Replies replies, String sentence) throws IOException {
    replies.writeBytes(Json.MAPPER.writeValueAsBytes(Map.of("error", sentence)));
  }

  /** One connection's side: with per-thread searchers, its own view. */
  final class Session implements AutoCloseable {
    /** The view of one's own, and the shared one that it was made from. */
    private View own;

    private View origin;

    /** Appends the payload of a reply; its status. */
    int answer(Frames.Requests requests, Frames.Replies replies) throws IOException {
      String sentence;
      int status = Frames.ERROR;
      try {
        act(requests.verb, requests.bytes(), requests.at, requests.length, replies);
        return Frames.OK;
      } catch (Failure failure) {
        status = failure.status;
        sentence = failure.getMessage();
      } catch (StackOverflowError deep) {
        sentence = "the request is nested too deeply";
      } catch (IOException | RuntimeException failed) {
        sentence = "Lucene: " + failed;
      }
      replies.restart();
      refuse(replies, sentence);
      return status;
    }

    private void act(int verb, byte[] bytes, int at, int length, Frames.Replies replies)
        throws IOException, Failure {
      Object reply = Map.of();
      switch (verb) {
        case Frames.QUERY -> {
          query(Json.read(bytes, at, length, Ask.class, "query"), replies);
          return;
        }
        case Frames.BATCH -> reply = opened().batch(bytes, at, length);
        case Frames.REPLACE -> reply = opened().replace(bytes, at, length);
        case Frames.DELETE -> reply = opened().delete(bytes, at, length);
        case Frames.FACTS -> reply = Facts.of(data, options, index);
        case Frames.CREATE -> create(Json.read(bytes, at, length, Schema.class, "create"));
        case Frames.ANALYSE -> {
          Text asked = Json.read(bytes, at, length, Text.class, "analyse");
          if (asked.text() == null) {
            throw Failure.error("the payload of analyse has a \"text\"");
          }
          reply = Map.of("terms", analysis.terms(asked.text()));
        }
        case Frames.SETTLE -> {
          JsonNode asked = Json.read(bytes, at, length, JsonNode.class, "settle");
          opened().settle(asked.path("merge").asBoolean());
        }
        default -> {
          Json.read(bytes, at, length, JsonNode.class, "commit");
          opened().commit();
        }
      }
      replies.writeBytes(Json.MAPPER.writeValueAsBytes(reply));
    }

    private void query(Ask ask, Frames.Replies replies) throws IOException, Failure {
      Index now = opened();
      Query query = new QueryCompiler(now.schema).compile(ask);
      View view = view(now);
      try {
        Reply reply = new Reply(view, now.schema, ask);
        reply.write(ask, new Search(view, now.schema).find(ask, query), replies);
      } finally {
        Index.release(view);
      }
    }

    /** The view to search, held until it is released. */
    private View view(Index now) throws IOException {
      if (options.is("searcher", "shared")) {
        return now.acquire();
      }
      if (own == null || origin != now.current()) {
        close();
        View current = now.current();
        own = now.copy();
        origin = current;
      }
      own.whole.incRef();
      return own;
    }

    @Override
    public void close() throws IOException {
      if (own != null) {
        Index.release(own);
        own = null;
      }
    }
  }
}
