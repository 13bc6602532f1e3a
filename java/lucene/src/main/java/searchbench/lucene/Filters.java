package searchbench.lucene;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.document.DoubleField;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.KeywordField;
import org.apache.lucene.document.LongField;
import org.apache.lucene.search.FieldExistsQuery;
import org.apache.lucene.search.MatchNoDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermRangeQuery;
import org.apache.lucene.util.BytesRef;

/** Filters in Lucene's queries; values are held to the types of their fields. */
final class Filters {
  private static final BigDecimal LEAST = BigDecimal.valueOf(Long.MIN_VALUE);
  private static final BigDecimal MOST = BigDecimal.valueOf(Long.MAX_VALUE);

  private final Schema schema;

  Filters(Schema schema) {
    this.schema = schema;
  }

  /** The documents that are in the range or have one of the values (of not_in too). */
  Query compile(Ask.Filter filter) throws Failure {
    if (filter.range() != null) {
      return range(filter.range());
    }
    return in(filter.in() != null ? filter.in() : filter.notIn());
  }

  private Query in(Ask.Values asked) throws Failure {
    int index = schema.whole(asked.field(), "filtered");
    String column = Schema.column(index);
    Schema.Field field = schema.fields().get(index);
    if (field.type().isKeyword()) {
      List<BytesRef> values = new ArrayList<>();
      for (JsonNode value : asked.values()) {
        values.add(new BytesRef(text(value, field)));
      }
      return values.isEmpty() ? new MatchNoDocsQuery() : KeywordField.newSetQuery(column, values);
    }
    if (field.type() == Schema.Kind.FLOAT) {
      double[] values = new double[asked.values().size()];
      for (int i = 0; i < values.length; i++) {
        values[i] = number(asked.values().get(i), field).doubleValue() + 0.0;
      }
      return DoubleField.newSetQuery(column, values);
    }
    List<Long> values = new ArrayList<>();
    for (JsonNode value : asked.values()) {
      BigDecimal number = number(value, field);
      // A fraction equals no integer.
      if (inside(number) && number.compareTo(round(number, RoundingMode.FLOOR)) == 0) {
        values.add(number.longValue());
      }
    }
    return LongField.newSetQuery(column, values.stream().mapToLong(Long::longValue).toArray());
  }

  private Query range(Ask.Range asked) throws Failure {
    int index = schema.whole(asked.field(), "filtered");
    String column = Schema.column(index);
    Schema.Field field = schema.fields().get(index);
    if (asked.low() == null && asked.high() == null) {
      return new FieldExistsQuery(column);
    }
    if (field.type().isKeyword()) {
      BytesRef low = asked.low() == null ? null : new BytesRef(text(asked.low(), field));
      BytesRef high = asked.high() == null ? null : new BytesRef(text(asked.high(), field));
      return new TermRangeQuery(column, low, high, asked.includeLow(), asked.includeHigh());
    }
    BigDecimal low = asked.low() == null ? null : number(asked.low(), field);
    BigDecimal high = asked.high() == null ? null : number(asked.high(), field);
    if (field.type() == Schema.Kind.FLOAT) {
      double from = low == null ? Double.NEGATIVE_INFINITY : low.doubleValue() + 0.0;
      double to = high == null ? Double.POSITIVE_INFINITY : high.doubleValue() + 0.0;
      return DoubleField.newRangeQuery(
          column,
          asked.includeLow() ? from : DoublePoint.nextUp(from),
          asked.includeHigh() ? to : DoublePoint.nextDown(to));
    }
    // Bounds are brought to the nearest integers that are inside.
    BigDecimal from = low == null ? LEAST : bound(low, asked.includeLow(), RoundingMode.CEILING);
    BigDecimal to = high == null ? MOST : bound(high, asked.includeHigh(), RoundingMode.FLOOR);
    from = from.max(LEAST);
    to = to.min(MOST);
    if (from.compareTo(to) > 0) {
      return new MatchNoDocsQuery();
    }
    return LongField.newRangeQuery(column, from.longValueExact(), to.longValueExact());
  }

  private static BigDecimal bound(BigDecimal number, boolean include, RoundingMode inwards) {
    BigDecimal whole = round(number, inwards);
    if (include || whole.compareTo(number) != 0) {
      return whole;
    }
    return inwards == RoundingMode.CEILING
        ? whole.add(BigDecimal.ONE)
        : whole.subtract(BigDecimal.ONE);
  }

  /** Rounds; a number far beyond 64 bits, which has no fraction of interest, is left alone. */
  private static BigDecimal round(BigDecimal number, RoundingMode mode) {
    return inside(number) ? number.setScale(0, mode) : number;
  }

  private static boolean inside(BigDecimal number) {
    return number.compareTo(LEAST) >= 0 && number.compareTo(MOST) <= 0;
  }

  private static String text(JsonNode value, Schema.Field field) throws Failure {
    if (!value.isTextual()) {
      throw misfit(value, field);
    }
    return value.textValue();
  }

  private static BigDecimal number(JsonNode value, Schema.Field field) throws Failure {
    if (field.type() == Schema.Kind.BOOLEAN) {
      if (!value.isBoolean()) {
        throw misfit(value, field);
      }
      return value.booleanValue() ? BigDecimal.ONE : BigDecimal.ZERO;
    }
    if (!value.isNumber() || Double.isInfinite(value.doubleValue())) {
      throw misfit(value, field);
    }
    return value.decimalValue();
  }

  private static Failure misfit(JsonNode value, Schema.Field field) {
    return Failure.error(
        "field %s is of type %s and cannot be compared with %s",
        Json.quoted(field.name()), field.type(), value);
  }
}
