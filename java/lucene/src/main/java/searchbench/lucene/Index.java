package searchbench.lucene;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.MultiBits;
import org.apache.lucene.index.Term;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.BytesRefHash;

/** The index: its parts, documents going in, and the view that searches see. */
final class Index {
  /** {@code searchbench.json}, written last when an index is made: without it there is none. */
  record Manifest(int format, int parts, Schema schema) {}

  /** One document that was left out, and why. */
  record Refused(String id, String reason) {}

  /** What became of a batch. */
  record Accepted(@JsonProperty("accepted") long count, List<Refused> refused) {}

  private static final String MANIFEST = "searchbench.json";

  final Schema schema;
  final Analysis analysis;
  private final Options options;
  private final Documents documents;
  private final List<Part> parts = new ArrayList<>();

  /** The ids taken; null until a batch needs them. */
  private BytesRefHash ids;

  /** Of these the ones that were deleted since: they are free again. */
  private final Set<String> gone = new HashSet<>();

  private long nextSeq;
  private boolean dirty;
  private volatile View view;

  private Index(Path data, Schema schema, Options options, Analysis analysis, boolean create)
      throws IOException {
    this.schema = schema;
    this.options = options;
    this.analysis = analysis;
    this.documents = new Documents(schema, options.is("keys", "true"));
    for (int number = 0; number < options.number("parts"); number++) {
      Part part = new Part(data.resolve("part-" + number), options, analysis);
      parts.add(part);
      if (create) {
        part.create();
      }
    }
    reload();
    nextSeq = view.nextSeq();
    if (options.number("refresh_ms") > 0) {
      Thread thread = new Thread(this::refreshForever, "refresh");
      thread.setDaemon(true);
      thread.start();
    }
  }

  /** The index in {@code data}; null if there is none. */
  static Index open(Path data, Options options, Analysis analysis) throws IOException, Failure {
    Path file = data.resolve(MANIFEST);
    if (!Files.exists(file)) {
      return null;
    }
    byte[] bytes = Files.readAllBytes(file);
    Manifest manifest = Json.read(bytes, 0, bytes.length, Manifest.class, file.toString());
    int asked = options.number("parts");
    if (manifest.parts != asked) {
      throw Failure.error(
          "the index in %s has parts %d, not %d: use another --data or ingest anew",
          data, manifest.parts, asked);
    }
    return new Index(data, manifest.schema, options, analysis, false);
  }

  static Index create(Path data, Schema schema, Options options, Analysis analysis)
      throws IOException, Failure {
    if (Files.exists(data.resolve(MANIFEST))) {
      throw Failure.error("there is an index in %s already", data);
    }
    removeLeftovers(data);
    Index index = new Index(data, schema, options, analysis, true);
    Manifest manifest = new Manifest(1, options.number("parts"), schema);
    Path temporary = data.resolve(MANIFEST + ".new");
    Files.write(temporary, Json.MAPPER.writeValueAsBytes(manifest));
    Files.move(temporary, data.resolve(MANIFEST), StandardCopyOption.ATOMIC_MOVE);
    return index;
  }

  /** What an interrupted create has left. */
  private static void removeLeftovers(Path data) throws IOException {
    List<Path> old = new ArrayList<>();
    try (Stream<Path> all = Files.walk(data)) {
      all.filter(path -> !path.equals(data))
          .filter(path -> data.relativize(path).getName(0).toString().startsWith("part-"))
          .sorted(Comparator.reverseOrder())
          .forEach(old::add);
    }
    for (Path path : old) {
      Files.delete(path);
    }
  }

  /** The view that all share; {@link #release} it after use. */
  View acquire() {
    while (true) {
      View now = view;
      if (now.whole.tryIncRef()) {
        return now;
      }
    }
  }

  static void release(View used) throws IOException {
    used.whole.decRef();
  }

  /** What all see now, only to be compared. */
  View current() {
    return view;
  }

  /**
   * A view of one's own of what all see now: readers of one's own and a searcher of one's own.
   * Near-real-time readers come from a pool of the writer, so there the searcher alone is own.
   */
  synchronized View copy() throws IOException {
    List<DirectoryReader> own = new ArrayList<>();
    for (DirectoryReader shared : view.readers) {
      if (options.number("refresh_ms") > 0) {
        shared.incRef();
        own.add(shared);
      } else {
        own.add(DirectoryReader.open(shared.getIndexCommit()));
      }
    }
    return new View(own);
  }

  /** What is to be done with one line of a request. */
  private interface Change {
    /** Why it was not done; null where it was. */
    String make(Documents.Read read) throws IOException;
  }

  /** Takes documents, one a line. */
  synchronized Accepted batch(byte[] bytes, int at, int length) throws IOException, Failure {
    return each(
        bytes,
        at,
        length,
        read -> {
          if (!take(read.id())) {
            return "a document with id " + Json.quoted(read.id()) + " is in the index already";
          }
          add(read);
          return null;
        });
  }

  /** Puts each document in the place of the one with its id; it is then the last of all. */
  synchronized Accepted replace(byte[] bytes, int at, int length) throws IOException, Failure {
    needKeys();
    return each(
        bytes,
        at,
        length,
        read -> {
          take(read.id());
          removeFromParts(read.id());
          add(read);
          return null;
        });
  }

  /** Removes the documents whose ids stand in the lines. */
  synchronized Accepted delete(byte[] bytes, int at, int length) throws IOException, Failure {
    needKeys();
    return each(
        bytes,
        at,
        length,
        read -> {
          if (take(read.id())) {
            gone.add(read.id());
            return "there is no document with id " + Json.quoted(read.id());
          }
          gone.add(read.id());
          removeFromParts(read.id());
          dirty = true;
          return null;
        });
  }

  private void needKeys() throws Failure {
    if (!options.is("keys", "true")) {
      throw Failure.error("ids are not indexed (keys), so no document can be found by its id");
    }
  }

  private void removeFromParts(String id) throws IOException {
    try {
      for (Part part : parts) {
        part.remove(new Term(Documents.KEY, id));
      }
    } catch (IOException | RuntimeException failed) {
      giveUp();
      throw failed;
    }
  }

  private Accepted each(byte[] bytes, int at, int length, Change change) throws IOException {
    List<Refused> refused = new ArrayList<>();
    long accepted = 0;
    int end = at + length;
    for (int from = at; from < end; ) {
      int to = from;
      while (to < end && bytes[to] != '\n') {
        to++;
      }
      if (!blank(bytes, from, to)) {
        Documents.Read read = documents.read(bytes, from, to - from);
        String reason = read.reason() != null ? read.reason() : change.make(read);
        if (reason == null) {
          accepted++;
        } else {
          refused.add(new Refused(read.id(), reason));
        }
      }
      from = to + 1;
    }
    return new Accepted(accepted, refused);
  }

  private static boolean blank(byte[] bytes, int from, int to) {
    for (int i = from; i < to; i++) {
      if (bytes[i] != ' ' && bytes[i] != '\r' && bytes[i] != '\t') {
        return false;
      }
    }
    return true;
  }

  private boolean take(String id) throws IOException {
    if (ids == null) {
      ids = new BytesRefHash();
      gone.clear();
      Bits live = MultiBits.getLiveDocs(view.whole);
      for (int document = 0; document < view.whole.maxDoc(); document++) {
        if (live == null || live.get(document)) {
          ids.add(new BytesRef(view.id(document)));
        }
      }
    }
    return ids.add(new BytesRef(id)) >= 0 || gone.remove(id);
  }

  private void add(Documents.Read read) throws IOException {
    read.document().add(new NumericDocValuesField(Documents.SEQ, nextSeq));
    try {
      parts.get((int) (nextSeq % parts.size())).add(read.document());
    } catch (IOException | RuntimeException failed) {
      giveUp();
      throw failed;
    }
    nextSeq++;
    dirty = true;
  }

  /** After a failed write the writer is closed or has half a document: back to the last commit. */
  private void giveUp() throws IOException {
    parts.forEach(Part::abandon);
    ids = null;
    dirty = false;
    reload();
    nextSeq = view.nextSeq();
  }

  /** Commits and reloads without merging. */
  synchronized void commit() throws IOException {
    try {
      for (Part part : parts) {
        part.commit();
      }
    } catch (IOException | RuntimeException failed) {
      giveUp();
      throw failed;
    }
    dirty = false;
    reload();
  }

  /**
   * Commits, merges as the parameters say or where {@code merge} does, reloads, and gives the
   * indexing memory back.
   */
  synchronized void settle(boolean merge) throws IOException {
    try {
      for (Part part : parts) {
        part.settle(merge || options.is("segments", "merged"));
      }
      // Near-real-time readers are let go before the writer, which keeps files for them.
      reload();
      for (Part part : parts) {
        part.release();
      }
    } catch (IOException | RuntimeException failed) {
      giveUp();
      throw failed;
    }
    ids = null;
    dirty = false;
    // Merges that were under way have ended with release.
    reload();
  }

  private void reload() throws IOException {
    List<DirectoryReader> readers = new ArrayList<>();
    for (Part part : parts) {
      readers.add(part.reader());
    }
    show(new View(readers));
  }

  private void show(View next) throws IOException {
    View before = view;
    view = next;
    if (before != null) {
      before.whole.decRef();
    }
  }

  private synchronized void refresh() throws IOException {
    if (!dirty) {
      return;
    }
    dirty = false;
    List<DirectoryReader> readers = new ArrayList<>();
    for (int i = 0; i < parts.size(); i++) {
      DirectoryReader before = view.readers.get(i);
      DirectoryReader fresh = parts.get(i).fresh(before);
      if (fresh == null) {
        before.incRef();
        fresh = before;
      }
      readers.add(fresh);
    }
    show(new View(readers));
  }

  private void refreshForever() {
    while (true) {
      try {
        Thread.sleep(options.number("refresh_ms"));
        refresh();
      } catch (InterruptedException | IOException | RuntimeException failed) {
        System.err.println("refresh failed: " + failed);
      }
    }
  }
}
