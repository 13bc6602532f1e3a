package searchbench.lucene;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;

/** The fields of a corpus, in order. Every document also has an id, a unique string. */
record Schema(List<Field> fields) {
  /** The types that a field can have. Text is analysed; the others are matched whole. */
  enum Kind {
    @JsonProperty("text")
    TEXT,
    @JsonProperty("keyword")
    KEYWORD,
    @JsonProperty("keywords")
    KEYWORDS,
    @JsonProperty("integer")
    INTEGER,
    @JsonProperty("float")
    FLOAT,
    @JsonProperty("date")
    DATE,
    @JsonProperty("boolean")
    BOOLEAN;

    boolean isKeyword() {
      return this == KEYWORD || this == KEYWORDS;
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** The first names of columns, so that not every value of every document makes its own. */
  private static final String[] COLUMNS =
      IntStream.range(0, 256).mapToObj(index -> "f" + index).toArray(String[]::new);

  /** One named field; {@code stored}: its value can be returned with a hit. */
  record Field(String name, Kind type, Boolean stored) {
    Field {
      if (name == null || type == null) {
        throw new IllegalArgumentException("a field has a name and a type");
      }
      stored = stored == null || stored;
    }
  }

  Schema {
    if (fields == null) {
      throw new IllegalArgumentException("a schema has \"fields\"");
    }
    Map<String, Field> seen = new HashMap<>();
    for (Field field : fields) {
      if (seen.put(field.name(), field) != null) {
        throw new IllegalArgumentException(
            "there are two fields named " + Json.quoted(field.name()));
      }
    }
  }

  /** The place of the field of that name, or a sentence with the nearest valid name. */
  int indexOf(String name) throws Failure {
    for (int i = 0; i < fields.size(); i++) {
      if (fields.get(i).name().equals(name)) {
        return i;
      }
    }
    if (fields.isEmpty()) {
      throw Failure.error("there is no field %s; the schema has none", Json.quoted(name));
    }
    String near = Nearest.to(name, fields.stream().map(Field::name).toList());
    throw Failure.error(
        "there is no field %s; did you mean %s?", Json.quoted(name), Json.quoted(near));
  }

  /** The place of a field that is matched whole; {@code what} is to be done with it. */
  int whole(String name, String what) throws Failure {
    int index = indexOf(name);
    if (fields.get(index).type() == Kind.TEXT) {
      throw Failure.unsupported(
          "field %s is text; only fields that are matched whole can be %s",
          Json.quoted(name), what);
    }
    return index;
  }

  Kind kind(int index) {
    return fields.get(index).type();
  }

  /** Lucene's name of a field: ours alone, so that no name in a corpus can mean anything to it. */
  static String column(int index) {
    return index < COLUMNS.length ? COLUMNS[index] : "f" + index;
  }
}
