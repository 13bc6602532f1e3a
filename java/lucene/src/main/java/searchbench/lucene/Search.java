package searchbench.lucene;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.lucene.document.DoubleField;
import org.apache.lucene.document.KeywordField;
import org.apache.lucene.document.LongField;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.Collector;
import org.apache.lucene.search.FieldDoc;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.SortedNumericSelector;
import org.apache.lucene.search.SortedSetSelector;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopDocsCollector;
import org.apache.lucene.search.TopFieldCollectorManager;
import org.apache.lucene.search.TopFieldDocs;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.TotalHitCountCollector;
import org.apache.lucene.search.Weight;

/**
 * One question put to a view. Every part is searched by itself, so that within a part Lucene's own
 * rule for ties (the lower document number) is the order of ingest; then the parts are merged.
 */
final class Search {
  /** What was found: the exact total, the page, and counts in the order asked, groups last. */
  record Found(long total, List<Hit> hits, List<Counts> counts) {}

  /** {@code score}: null where sorted by fields alone. */
  record Hit(int document, Float score) {}

  private record Scored(ScoreDoc hit, long seq) {}

  private final View view;
  private final Schema schema;

  Search(View view, Schema schema) {
    this.view = view;
    this.schema = schema;
  }

  Found find(Ask ask, Query query) throws IOException, Failure {
    Sort sort = sort(ask.sort());
    List<Counts> counts = counts(ask);
    long wanted = ask.limit() == 0 ? 0 : (long) ask.offset() + ask.limit();
    int best = (int) Math.min(wanted, view.documents());
    Query rewritten = view.searcher.rewrite(query);
    TopDocs[] found = new TopDocs[view.parts.size()];
    Weight weight = null;
    long known = -1;
    if (best > 0 && counts.isEmpty() && mayBeKnown(rewritten)) {
      weight = view.searcher.createWeight(rewritten, top(sort, best, best).scoreMode(), 1);
      known = view.count(weight);
    }
    if (known < 0) {
      weight = null;
    }
    long total = 0;
    for (int part = 0; part < found.length; part++) {
      Collector top = top(sort, best, known < 0 ? Integer.MAX_VALUE : best);
      Collector all = Counts.together(top, counts);
      if (weight == null) {
        weight = view.searcher.createWeight(rewritten, all.scoreMode(), 1);
      }
      List<LeafReaderContext> segments = view.parts.get(part);
      View.collect(segments, weight, all);
      if (top instanceof TopDocsCollector<?> collector) {
        found[part] = collector.topDocs();
        total += collector.getTotalHits();
      } else {
        total += ((TotalHitCountCollector) top).getTotalHits();
      }
    }
    return new Found(
        known < 0 ? total : known,
        best == 0 ? List.of() : page(ask, sort, found, best),
        counts);
  }

  private List<Counts> counts(Ask ask) throws IOException, Failure {
    List<Counts> counts = new ArrayList<>();
    for (Ask.Facet facet : ask.facets()) {
      int index = schema.whole(facet.field(), "counted");
      counts.add(Counts.of(view, schema, index, facet.limit()));
    }
    if (ask.groupBy() != null) {
      int index = schema.whole(ask.groupBy(), "grouped by");
      counts.add(Counts.of(view, schema, index, ask.limit()));
    }
    return counts;
  }

  /**
   * Whether it is worth asking for the count of its matches: of several terms it is not known, and
   * to ask costs as much as to look the terms up once more.
   */
  private static boolean mayBeKnown(Query rewritten) {
    return !(rewritten instanceof BooleanQuery || rewritten instanceof PhraseQuery);
  }

  /**
   * The best of a part. Once {@code exactly} so many matches were counted, documents may be skipped
   * that cannot be among the best: only where the total is known from elsewhere.
   */
  private static Collector top(Sort sort, int best, int exactly) {
    if (best == 0) {
      return new TotalHitCountCollector();
    }
    if (sort == null) {
      return new TopScoreDocCollectorManager(best, exactly).newCollector();
    }
    return new TopFieldCollectorManager(sort, best, exactly).newCollector();
  }

  private List<Hit> page(Ask ask, Sort sort, TopDocs[] found, int best) throws IOException {
    ScoreDoc[] merged = sort == null ? byScore(found, best) : byKeys(sort, found, best);
    int scoreKey = scoreKey(sort);
    List<Hit> hits = new ArrayList<>();
    for (int i = ask.offset(); i < merged.length; i++) {
      Float score = null;
      if (sort == null) {
        score = merged[i].score;
      } else if (scoreKey >= 0) {
        score = (Float) ((FieldDoc) merged[i]).fields[scoreKey];
      }
      hits.add(new Hit(merged[i].doc, score));
    }
    return hits;
  }

  private ScoreDoc[] byScore(TopDocs[] found, int best) throws IOException {
    if (found.length == 1) {
      return found[0].scoreDocs;
    }
    List<Scored> all = new ArrayList<>();
    for (TopDocs part : found) {
      for (ScoreDoc hit : part.scoreDocs) {
        all.add(new Scored(hit, view.seq(hit.doc)));
      }
    }
    all.sort(
        Comparator.comparingDouble((Scored one) -> -one.hit.score)
            .thenComparingLong(Scored::seq));
    return all.stream().limit(best).map(Scored::hit).toArray(ScoreDoc[]::new);
  }

  private static ScoreDoc[] byKeys(Sort sort, TopDocs[] found, int best) {
    if (found.length == 1) {
      return found[0].scoreDocs;
    }
    TopFieldDocs[] parts = Arrays.copyOf(found, found.length, TopFieldDocs[].class);
    return TopDocs.merge(sort, best, parts).scoreDocs;
  }

  private static int scoreKey(Sort sort) {
    if (sort != null) {
      for (int i = 0; i < sort.getSort().length; i++) {
        if (sort.getSort()[i].getType() == SortField.Type.SCORE) {
          return i;
        }
      }
    }
    return -1;
  }

  /** Null: by relevance, highest first. */
  private Sort sort(List<Ask.Key> keys) throws Failure {
    List<SortField> fields = new ArrayList<>();
    for (Ask.Key key : keys) {
      boolean relevance = key.field().equals("_score");
      // Lucene's own direction of relevance is highest first.
      fields.add(
          relevance
              ? new SortField(null, SortField.Type.SCORE, !key.descending())
              : key(schema.whole(key.field(), "sorted by"), key.descending()));
    }
    if (fields.isEmpty() || fields.get(0).equals(SortField.FIELD_SCORE) && fields.size() == 1) {
      return null;
    }
    if (view.parts.size() > 1) {
      fields.add(new SortField(Documents.SEQ, SortField.Type.LONG));
    }
    return new Sort(fields.toArray(SortField[]::new));
  }

  /** Of several values the least counts, descending the greatest; missing ones come last. */
  private SortField key(int index, boolean descending) {
    String column = Schema.column(index);
    Schema.Kind kind = schema.kind(index);
    if (kind.isKeyword()) {
      SortedSetSelector.Type one =
          descending ? SortedSetSelector.Type.MAX : SortedSetSelector.Type.MIN;
      SortField field = KeywordField.newSortField(column, descending, one);
      field.setMissingValue(descending ? SortField.STRING_FIRST : SortField.STRING_LAST);
      return field;
    }
    SortedNumericSelector.Type one =
        descending ? SortedNumericSelector.Type.MAX : SortedNumericSelector.Type.MIN;
    if (kind == Schema.Kind.FLOAT) {
      SortField field = DoubleField.newSortField(column, descending, one);
      field.setMissingValue(descending ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY);
      return field;
    }
    SortField field = LongField.newSortField(column, descending, one);
    field.setMissingValue(descending ? Long.MIN_VALUE : Long.MAX_VALUE);
    return field;
  }
}
