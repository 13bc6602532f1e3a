package searchbench.lucene;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.exc.InputCoercionException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.document.BinaryDocValuesField;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoubleField;
import org.apache.lucene.document.Field.Store;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.KeywordField;
import org.apache.lucene.document.LongField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.UnicodeUtil;

/** Lines of a batch turned into Lucene's documents. */
final class Documents {
  /** Lucene's name of the id; a column rather than a stored field, which would be decompressed. */
  static final String ID = "id";

  /** Lucene's name of the index of ids, by which a document is replaced or deleted. */
  static final String KEY = "key";

  /** Lucene's name of the order of ingest. */
  static final String SEQ = "seq";

  private static final FieldType TEXT = new FieldType();

  static {
    TEXT.setTokenized(true);
    TEXT.setIndexOptions(IndexOptions.DOCS_AND_FREQS_AND_POSITIONS);
    TEXT.freeze();
  }

  /** One document as read, or why it is refused. */
  record Read(String id, String reason, Document document) {}

  private final Schema schema;

  /** Whether ids are indexed. */
  private final boolean keys;

  Documents(Schema schema, boolean keys) {
    this.schema = schema;
    this.keys = keys;
  }

  /** Reads one line. */
  Read read(byte[] bytes, int at, int length) {
    Line line = new Line();
    try (JsonParser json = Json.MAPPER.createParser(bytes, at, length)) {
      line.read(json);
    } catch (JsonProcessingException wrong) {
      return new Read("", "not a document in JSON: " + Json.sentence(wrong), null);
    } catch (IOException | Failure wrong) {
      return new Read("", "not a document in JSON: " + wrong.getMessage(), null);
    }
    if (line.id == null) {
      return new Read("", "the document has no id", null);
    }
    if (line.wrong != null) {
      return new Read(line.id, line.wrong, null);
    }
    BytesRef id = new BytesRef(line.id);
    if (id.length > IndexWriter.MAX_TERM_LENGTH) {
      String reason = "an id of " + id.length + " bytes is longer than Lucene's ";
      return new Read(line.id, reason + IndexWriter.MAX_TERM_LENGTH, null);
    }
    line.document.add(new BinaryDocValuesField(ID, id));
    if (keys) {
      line.document.add(new StringField(KEY, line.id, Store.NO));
    }
    return new Read(line.id, null, line.document);
  }

  private final class Line {
    private final Document document = new Document();
    private final boolean[] given = new boolean[schema.fields().size()];
    private String id;

    /** The first thing wrong; reading goes on, so that the id is known. */
    private String wrong;

    void read(JsonParser json) throws IOException, Failure {
      if (json.nextToken() != JsonToken.START_OBJECT) {
        throw Failure.error("a line is {\"id\": .., \"v\": {..}}");
      }
      for (String key = json.nextFieldName(); key != null; key = json.nextFieldName()) {
        JsonToken token = json.nextToken();
        switch (key) {
          case "id" -> {
            if (token != JsonToken.VALUE_STRING) {
              throw Failure.error("the id is a string");
            }
            id = json.getText();
          }
          case "v" -> {
            if (token != JsonToken.START_OBJECT) {
              throw Failure.error("\"v\" holds the values by field name");
            }
            values(json);
          }
          default -> throw Failure.error("unknown key %s, only id and v", Json.quoted(key));
        }
      }
      if (json.nextToken() != null) {
        throw Failure.error("more than one document in a line");
      }
    }

    private void values(JsonParser json) throws IOException {
      int expected = 0;
      for (String key = json.nextFieldName(); key != null; key = json.nextFieldName()) {
        json.nextToken();
        try {
          // Documents mostly give their fields in the schema's order: look there first.
          boolean inOrder =
              expected < given.length && schema.fields().get(expected).name().equals(key);
          int index = inOrder ? expected : schema.indexOf(key);
          expected = index + 1;
          if (given[index]) {
            throw Failure.error("field %s is given twice", Json.quoted(key));
          }
          given[index] = true;
          value(json, index);
        } catch (Failure failure) {
          wrong = wrong == null ? failure.getMessage() : wrong;
          json.skipChildren();
        }
      }
    }

    private void value(JsonParser json, int index) throws IOException, Failure {
      Schema.Field field = schema.fields().get(index);
      String column = Schema.column(index);
      Store store = field.stored() ? Store.YES : Store.NO;
      JsonToken token = json.currentToken();
      boolean fits =
          switch (field.type()) {
            case TEXT, KEYWORD -> token == JsonToken.VALUE_STRING;
            case KEYWORDS -> token == JsonToken.START_ARRAY;
            case INTEGER, DATE -> token == JsonToken.VALUE_NUMBER_INT;
            case FLOAT -> token.isNumeric();
            case BOOLEAN -> token.isBoolean();
          };
      if (!fits) {
        throw misfit(json, field);
      }
      switch (field.type()) {
        case TEXT -> {
          String text = json.getText();
          document.add(new org.apache.lucene.document.Field(column, text, TEXT));
          if (field.stored()) {
            document.add(new StoredField(column, text));
          }
        }
        case KEYWORD -> document.add(keyword(column, json.getText(), store));
        case KEYWORDS -> {
          for (String text : texts(json, field)) {
            document.add(keyword(column, text, store));
          }
        }
        case INTEGER, DATE -> document.add(new LongField(column, whole(json, field), store));
        case FLOAT -> document.add(new DoubleField(column, number(json, field), store));
        case BOOLEAN ->
            document.add(new LongField(column, json.getBooleanValue() ? 1 : 0, store));
      }
    }

    private List<String> texts(JsonParser json, Schema.Field field) throws IOException, Failure {
      List<String> texts = new ArrayList<>();
      boolean strings = true;
      while (json.nextToken() != JsonToken.END_ARRAY) {
        if (json.currentToken() == JsonToken.VALUE_STRING) {
          texts.add(json.getText());
        } else {
          strings = false;
          json.skipChildren();
        }
      }
      if (!strings) {
        throw cannotHold(field, "a list that holds other than strings");
      }
      return texts;
    }
  }

  private static KeywordField keyword(String column, String text, Store store) throws Failure {
    int bytes = UnicodeUtil.calcUTF16toUTF8Length(text, 0, text.length());
    if (bytes > IndexWriter.MAX_TERM_LENGTH) {
      throw Failure.error(
          "a keyword of %d bytes is longer than Lucene's %d", bytes, IndexWriter.MAX_TERM_LENGTH);
    }
    return new KeywordField(column, text, store);
  }

  private static long whole(JsonParser json, Schema.Field field) throws IOException, Failure {
    try {
      return json.getLongValue();
    } catch (InputCoercionException beyond) {
      throw cannotHold(field, "a number beyond 64 bits");
    }
  }

  private static double number(JsonParser json, Schema.Field field) throws IOException, Failure {
    double number = json.getDoubleValue();
    if (Double.isInfinite(number)) {
      throw cannotHold(field, "a number beyond 64 bits");
    }
    // The sum turns -0.0, which equals 0.0 but is ordered before it, into 0.0.
    return number + 0.0;
  }

  private static Failure misfit(JsonParser json, Schema.Field field) throws IOException {
    return switch (json.currentToken()) {
      case VALUE_NULL ->
          Failure.error(
              "field %s is null; a field without a value is left out", Json.quoted(field.name()));
      case VALUE_STRING -> cannotHold(field, Json.quoted(json.getText()));
      case START_ARRAY -> cannotHold(field, "a list");
      case START_OBJECT -> cannotHold(field, "an object");
      default -> cannotHold(field, json.getText());
    };
  }

  private static Failure cannotHold(Schema.Field field, String what) {
    return Failure.error(
        "field %s is of type %s and cannot hold %s", Json.quoted(field.name()), field.type(), what);
  }
}
