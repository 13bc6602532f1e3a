package searchbench.lucene;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;

/** The query algebra as it crosses the wire; what is absent has the default of FORMATS.md. */
record Ask(
    Match match,
    List<Filter> filters,
    List<Key> sort,
    List<Facet> facets,
    @JsonProperty("group_by") String groupBy,
    Integer offset,
    Integer limit,
    List<String> fields) {

  Ask {
    filters = orEmpty(filters);
    sort = orEmpty(sort);
    facets = orEmpty(facets);
    offset = notNegative("offset", offset, 0);
    limit = notNegative("limit", limit, 10);
    fields = orEmpty(fields);
  }

  /** How a run of terms is to be found. */
  enum Mode {
    @JsonProperty("any")
    ANY,
    @JsonProperty("all")
    ALL,
    @JsonProperty("phrase")
    PHRASE,
    @JsonProperty("prefix")
    PREFIX,
    @JsonProperty("fuzzy")
    FUZZY
  }

  /** Terms in fields, or a composition: one of the two, never both. */
  record Match(
      Mode mode,
      List<String> terms,
      List<String> fields,
      Integer distance,
      List<Match> must,
      List<Match> should,
      @JsonProperty("must_not") List<Match> mustNot) {

    Match {
      boolean composed = must != null || should != null || mustNot != null;
      boolean simple = mode != null || terms != null || fields != null || distance != null;
      if (composed && simple) {
        throw new IllegalArgumentException(
            "a match is either terms or a composition, not both");
      }
      if (!composed && (mode == null || terms == null || fields == null)) {
        throw new IllegalArgumentException(
            "a match has \"mode\", \"terms\" and \"fields\", or \"must\", \"should\" or"
                + " \"must_not\"");
      }
      distance = notNegative("distance", distance, 1);
      terms = orEmpty(terms);
      fields = orEmpty(fields);
      must = orEmpty(must);
      should = orEmpty(should);
      mustNot = orEmpty(mustNot);
    }
  }

  /** A condition that leaves scores alone: exactly one of the three. */
  record Filter(Range range, Values in, @JsonProperty("not_in") Values notIn) {
    Filter {
      int given = (range == null ? 0 : 1) + (in == null ? 0 : 1) + (notIn == null ? 0 : 1);
      if (given != 1) {
        throw new IllegalArgumentException(
            "a filter is one of \"range\", \"in\" and \"not_in\"");
      }
    }
  }

  /** A field between two bounds; a bound that is null or absent is none. */
  record Range(
      String field,
      JsonNode low,
      JsonNode high,
      @JsonProperty("include_low") Boolean includeLow,
      @JsonProperty("include_high") Boolean includeHigh) {

    Range {
      named(field);
      low = low == null || low.isNull() ? null : low;
      high = high == null || high.isNull() ? null : high;
      includeLow = includeLow == null || includeLow;
      includeHigh = includeHigh == null || includeHigh;
    }
  }

  /** A field and some values. */
  record Values(String field, List<JsonNode> values) {
    Values {
      named(field);
      if (values == null) {
        throw new IllegalArgumentException("a list of values needs \"values\"");
      }
    }
  }

  /** One sort key; the field {@code _score} is relevance. */
  record Key(String field, Boolean descending) {
    Key {
      named(field);
      descending = descending != null && descending;
    }
  }

  /** The most frequent values of a field. */
  record Facet(String field, Integer limit) {
    Facet {
      named(field);
      limit = notNegative("limit", limit, 10);
    }
  }

  private static <T> List<T> orEmpty(List<T> list) {
    if (list != null && list.contains(null)) {
      throw new IllegalArgumentException("a list holds null");
    }
    return list == null ? List.of() : list;
  }

  private static void named(String field) {
    if (field == null) {
      throw new IllegalArgumentException("\"field\" is missing");
    }
  }

  private static Integer notNegative(String name, Integer number, int initial) {
    if (number != null && number < 0) {
      throw new IllegalArgumentException("\"" + name + "\" is negative");
    }
    return number == null ? initial : number;
  }
}
