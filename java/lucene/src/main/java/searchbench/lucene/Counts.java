package searchbench.lucene;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import org.apache.lucene.index.DocValues;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.OrdinalMap;
import org.apache.lucene.index.SortedNumericDocValues;
import org.apache.lucene.index.SortedSetDocValues;
import org.apache.lucene.search.Collector;
import org.apache.lucene.search.MultiCollector;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.SimpleCollector;
import org.apache.lucene.util.LongValues;
import org.apache.lucene.util.NumericUtils;

/** Counts the matching documents by the values of one column, read from doc values. */
abstract class Counts extends SimpleCollector {
  /** A value, as JSON has it, and how many documents have it. */
  record Count(Object value, long documents) {}

  final String column;
  final int limit;

  private Counts(String column, int limit) {
    this.column = column;
    this.limit = limit;
  }

  static Counts of(View view, Schema schema, int index, int limit) throws IOException {
    Schema.Kind kind = schema.kind(index);
    String column = Schema.column(index);
    return kind.isKeyword() ? new Keywords(view, column, limit) : new Numbers(kind, column, limit);
  }

  @Override
  public ScoreMode scoreMode() {
    return ScoreMode.COMPLETE_NO_SCORES;
  }

  /** The {@code limit} most frequent values, ties by value. */
  abstract List<Count> best() throws IOException;

  /** {@code worstFirst} orders counted values; the best {@code limit} of them, best first. */
  private static <T> List<T> best(Iterable<T> all, Comparator<T> worstFirst, int limit) {
    PriorityQueue<T> kept = new PriorityQueue<>(worstFirst);
    for (T one : all) {
      kept.add(one);
      if (kept.size() > limit) {
        kept.poll();
      }
    }
    List<T> list = new ArrayList<>(kept);
    list.sort(worstFirst.reversed());
    return list;
  }

  /** By ordinal: the order of ordinals is that of values. */
  private static final class Keywords extends Counts {
    private record Entry(int ordinal, int documents) {}

    private final View view;
    private final OrdinalMap map;
    private final int[] documents;
    private SortedSetDocValues values;
    private LongValues global;

    Keywords(View view, String column, int limit) throws IOException {
      super(column, limit);
      this.view = view;
      this.map = view.ordinals(column);
      long distinct = map != null ? map.getValueCount() : alone(view, column);
      this.documents = new int[Math.toIntExact(distinct)];
    }

    private static long alone(View view, String column) throws IOException {
      List<LeafReaderContext> leaves = view.whole.leaves();
      return leaves.isEmpty()
          ? 0
          : DocValues.getSortedSet(leaves.get(0).reader(), column).getValueCount();
    }

    @Override
    protected void doSetNextReader(LeafReaderContext segment) throws IOException {
      values = DocValues.getSortedSet(segment.reader(), column);
      global = map == null ? LongValues.IDENTITY : map.getGlobalOrds(segment.ord);
    }

    @Override
    public void collect(int document) throws IOException {
      if (values.advanceExact(document)) {
        for (int i = values.docValueCount(); i > 0; i--) {
          documents[(int) global.get(values.nextOrd())]++;
        }
      }
    }

    @Override
    List<Count> best() throws IOException {
      List<Entry> found = new ArrayList<>();
      for (int ordinal = 0; ordinal < documents.length; ordinal++) {
        if (documents[ordinal] > 0) {
          found.add(new Entry(ordinal, documents[ordinal]));
        }
      }
      Comparator<Entry> worstFirst =
          Comparator.comparingInt(Entry::documents)
              .thenComparing(Comparator.comparingInt(Entry::ordinal).reversed());
      List<Count> counts = new ArrayList<>();
      for (Entry entry : Counts.best(found, worstFirst, limit)) {
        counts.add(new Count(value(entry.ordinal), entry.documents));
      }
      return counts;
    }

    private String value(int ordinal) throws IOException {
      int segment = map == null ? 0 : map.getFirstSegmentNumber(ordinal);
      long own = map == null ? ordinal : map.getFirstSegmentOrd(ordinal);
      LeafReaderContext leaf = view.whole.leaves().get(segment);
      return DocValues.getSortedSet(leaf.reader(), column).lookupOrd(own).utf8ToString();
    }
  }

  /** By the number itself; floats are kept in an order-preserving form. */
  private static final class Numbers extends Counts {
    private final Schema.Kind kind;
    private final Map<Long, int[]> documents = new HashMap<>();
    private SortedNumericDocValues values;

    Numbers(Schema.Kind kind, String column, int limit) {
      super(column, limit);
      this.kind = kind;
    }

    @Override
    protected void doSetNextReader(LeafReaderContext segment) throws IOException {
      values = DocValues.getSortedNumeric(segment.reader(), column);
    }

    @Override
    public void collect(int document) throws IOException {
      if (values.advanceExact(document)) {
        documents.computeIfAbsent(values.nextValue(), number -> new int[1])[0]++;
      }
    }

    @Override
    List<Count> best() {
      Comparator<Map.Entry<Long, int[]>> worstFirst =
          Comparator.comparingInt((Map.Entry<Long, int[]> entry) -> entry.getValue()[0])
              .thenComparing(Map.Entry.<Long, int[]>comparingByKey().reversed());
      return Counts.best(documents.entrySet(), worstFirst, limit).stream()
          .map(entry -> new Count(value(entry.getKey()), entry.getValue()[0]))
          .toList();
    }

    private Object value(long number) {
      return switch (kind) {
        case FLOAT -> NumericUtils.sortableLongToDouble(number);
        case BOOLEAN -> number == 1;
        default -> number;
      };
    }
  }

  /** {@code first} and all of {@code more}, fed from one pass. */
  static Collector together(Collector first, List<Counts> more) {
    if (more.isEmpty()) {
      return first;
    }
    List<Collector> all = new ArrayList<>(more);
    all.add(0, first);
    return MultiCollector.wrap(all);
  }
}
