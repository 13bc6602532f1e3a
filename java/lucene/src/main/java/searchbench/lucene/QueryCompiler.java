package searchbench.lucene;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.AutomatonQuery;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.MatchNoDocsQuery;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.util.automaton.LevenshteinAutomata;

/**
 * The algebra in Lucene's queries.
 *
 * <p>Scores: any and all sum BM25 over terms and fields; a phrase has BM25 of its own in each field;
 * prefix and fuzzy count 1 for each term and field that matches; filters add nothing.
 */
final class QueryCompiler {
  private final Schema schema;
  private final Filters filters;

  QueryCompiler(Schema schema) {
    this.schema = schema;
    this.filters = new Filters(schema);
  }

  /** Match and filters. */
  Query compile(Ask ask) throws Failure {
    Query match = ask.match() == null ? new MatchAllDocsQuery() : match(ask.match());
    if (ask.filters().isEmpty()) {
      return match;
    }
    BooleanQuery.Builder all = new BooleanQuery.Builder().add(match, Occur.MUST);
    for (Ask.Filter filter : ask.filters()) {
      all.add(filters.compile(filter), filter.notIn() == null ? Occur.FILTER : Occur.MUST_NOT);
    }
    return all.build();
  }

  private Query match(Ask.Match match) throws Failure {
    if (match.mode() != null) {
      return terms(match);
    }
    BooleanQuery.Builder all = new BooleanQuery.Builder();
    for (Ask.Match part : match.must()) {
      all.add(match(part), Occur.MUST);
    }
    for (Ask.Match part : match.should()) {
      all.add(match(part), Occur.SHOULD);
    }
    for (Ask.Match part : match.mustNot()) {
      all.add(match(part), Occur.MUST_NOT);
    }
    if (match.must().isEmpty() && match.should().isEmpty()) {
      all.add(new MatchAllDocsQuery(), Occur.MUST);
    }
    return all.build();
  }

  private Query terms(Ask.Match match) throws Failure {
    Set<String> columns = columns(match.fields());
    if (match.mode() == Ask.Mode.FUZZY
        && match.distance() > LevenshteinAutomata.MAXIMUM_SUPPORTED_DISTANCE) {
      throw Failure.error("the distance of fuzzy is 0 to 2, not %d", match.distance());
    }
    List<String> known = match.terms().stream().filter(Analysis::isTerm).toList();
    boolean lost = known.size() < match.terms().size();
    if (known.isEmpty() || columns.isEmpty() || lost && match.mode() != Ask.Mode.ANY) {
      return new MatchNoDocsQuery();
    }
    return switch (match.mode()) {
      // Flat, so that Lucene sees one union of terms.
      case ANY -> {
        BooleanQuery.Builder any = new BooleanQuery.Builder();
        for (String column : columns) {
          for (String text : known) {
            any.add(new TermQuery(new Term(column, text)), Occur.SHOULD);
          }
        }
        yield any.build();
      }
      case PHRASE ->
          inAny(columns, column -> new PhraseQuery(column, known.toArray(String[]::new)));
      case ALL ->
          each(known, columns, (column, text) -> new TermQuery(new Term(column, text)));
      case PREFIX ->
          each(known, columns, (column, text) -> new PrefixQuery(new Term(column, text)));
      case FUZZY ->
          each(known, columns, (column, text) -> fuzzy(column, text, match.distance()));
    };
  }

  /** Lucene's FuzzyQuery takes only the nearest terms; this takes all, and so is exact. */
  private static Query fuzzy(String column, String text, int distance) {
    LevenshteinAutomata automata = new LevenshteinAutomata(text, true);
    return new AutomatonQuery(new Term(column, text), automata.toAutomaton(distance));
  }

  private interface InField {
    Query make(String column, String text);
  }

  private static Query each(List<String> terms, Set<String> columns, InField query) {
    if (terms.size() == 1) {
      return inAny(columns, column -> query.make(column, terms.get(0)));
    }
    BooleanQuery.Builder all = new BooleanQuery.Builder();
    for (String text : terms) {
      all.add(inAny(columns, column -> query.make(column, text)), Occur.MUST);
    }
    return all.build();
  }

  private static Query inAny(Set<String> columns, Function<String, Query> query) {
    if (columns.size() == 1) {
      return query.apply(columns.iterator().next());
    }
    BooleanQuery.Builder any = new BooleanQuery.Builder();
    for (String column : columns) {
      any.add(query.apply(column), Occur.SHOULD);
    }
    return any.build();
  }

  private Set<String> columns(List<String> names) throws Failure {
    Set<String> columns = new LinkedHashSet<>();
    for (String name : names) {
      int index = schema.indexOf(name);
      if (schema.kind(index) != Schema.Kind.TEXT) {
        throw Failure.error(
            "field %s is %s; terms are searched in text, use a filter",
            Json.quoted(name), schema.kind(index));
      }
      columns.add(Schema.column(index));
    }
    return columns;
  }
}
