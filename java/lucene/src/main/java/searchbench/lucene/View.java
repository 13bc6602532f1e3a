package searchbench.lucene;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.DocValues;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiReader;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.OrdinalMap;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.SortedSetDocValues;
import org.apache.lucene.search.BulkScorer;
import org.apache.lucene.search.CollectionTerminatedException;
import org.apache.lucene.search.Collector;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.LeafCollector;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.packed.PackedInts;

/** The index as searches see it: all parts as one, with the term statistics of all together. */
final class View {
  /** One reader a part. */
  final List<DirectoryReader> readers;

  final IndexReader whole;
  final IndexSearcher searcher;

  /** The segments of each part. */
  final List<List<LeafReaderContext>> parts = new ArrayList<>();

  private final Map<String, OrdinalMap> ordinals = new ConcurrentHashMap<>();

  /** Takes the readers over: they are closed when the last user of the view has gone. */
  View(List<DirectoryReader> readers) throws IOException {
    this.readers = readers;
    boolean one = readers.size() == 1;
    this.whole = one ? readers.get(0) : new MultiReader(readers.toArray(IndexReader[]::new), false);
    if (!one) {
      // The whole holds a reference of its own to each of them; these were ours.
      for (DirectoryReader reader : readers) {
        reader.decRef();
      }
    }
    this.searcher = new IndexSearcher(whole);
    int at = 0;
    for (DirectoryReader reader : readers) {
      int segments = reader.leaves().size();
      parts.add(whole.leaves().subList(at, at + segments));
      at += segments;
    }
  }

  /**
   * Searches some of the segments. What IndexSearcher has for this is protected, and differs between
   * Lucene 9 and 10; the loop is its own.
   */
  static void collect(List<LeafReaderContext> segments, Weight weight, Collector collector)
      throws IOException {
    collector.setWeight(weight);
    for (LeafReaderContext segment : segments) {
      LeafCollector found;
      try {
        found = collector.getLeafCollector(segment);
      } catch (CollectionTerminatedException notWanted) {
        continue;
      }
      BulkScorer scorer = weight.bulkScorer(segment);
      if (scorer != null) {
        try {
          scorer.score(found, segment.reader().getLiveDocs(), 0, DocIdSetIterator.NO_MORE_DOCS);
        } catch (CollectionTerminatedException enough) {
          // What the collector has of this segment is all that it wants.
        }
      }
      found.finish();
    }
  }

  /** How many documents match, where Lucene knows it without looking at them; else -1. */
  long count(Weight weight) throws IOException {
    long total = 0;
    for (LeafReaderContext segment : whole.leaves()) {
      int matching = weight.count(segment);
      if (matching < 0) {
        return -1;
      }
      total += matching;
    }
    return total;
  }

  int documents() {
    return whole.numDocs();
  }

  /** The id of a document. */
  String id(int document) throws IOException {
    LeafReaderContext segment = segment(document);
    BinaryDocValues ids = DocValues.getBinary(segment.reader(), Documents.ID);
    ids.advanceExact(document - segment.docBase);
    return ids.binaryValue().utf8ToString();
  }

  /** Its place in the order of ingest. */
  long seq(int document) throws IOException {
    LeafReaderContext segment = segment(document);
    return seq(segment.reader(), document - segment.docBase);
  }

  private static long seq(LeafReader segment, int document) throws IOException {
    NumericDocValues order = DocValues.getNumeric(segment, Documents.SEQ);
    order.advanceExact(document);
    return order.longValue();
  }

  private LeafReaderContext segment(int document) {
    return whole.leaves().get(ReaderUtil.subIndex(document, whole.leaves()));
  }

  /** The stored values of a document. */
  Document stored(int document, Set<String> columns) throws IOException {
    return searcher.storedFields().document(document, columns);
  }

  /** The first free place in the order of ingest: the last document of a part is its latest. */
  long nextSeq() throws IOException {
    long next = 0;
    for (List<LeafReaderContext> part : parts) {
      if (!part.isEmpty()) {
        LeafReader last = part.get(part.size() - 1).reader();
        next = Math.max(next, seq(last, last.maxDoc() - 1) + 1);
      }
    }
    return next;
  }

  /** Numbers for the values of a keyword column over all segments; null with one segment. */
  OrdinalMap ordinals(String column) throws IOException {
    List<LeafReaderContext> leaves = whole.leaves();
    if (leaves.size() < 2) {
      return null;
    }
    OrdinalMap map = ordinals.get(column);
    if (map == null) {
      SortedSetDocValues[] values = new SortedSetDocValues[leaves.size()];
      for (int i = 0; i < values.length; i++) {
        values[i] = DocValues.getSortedSet(leaves.get(i).reader(), column);
      }
      map = OrdinalMap.build(null, values, PackedInts.DEFAULT);
      ordinals.put(column, map);
    }
    return map;
  }
}
