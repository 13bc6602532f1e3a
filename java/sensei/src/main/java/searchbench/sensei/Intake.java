package searchbench.sensei;

import com.browseengine.bobo.util.BigNestedIntArray;
import com.senseidb.conf.SenseiSchema;
import com.senseidb.conf.SenseiSchema.FieldDefinition;
import com.senseidb.indexing.DefaultJsonSchemaInterpreter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.lucene.index.IndexWriter;
import org.json.JSONException;
import org.json.JSONObject;

/**
 * Says what is wrong with a document before Sensei gets it: Sensei writes such a document to its log
 * and goes on without it, and whoever sent it would never know.
 */
final class Intake {
  /** As the translator writes numbers: of one length, so that they sort as numbers do. */
  private static final Pattern NUMBER = Pattern.compile("[0-9]{20}");

  private final SenseiSchema schema;
  private final Set<String> numbers;

  /** {@code numbers}: the columns that hold nothing but numbers. */
  Intake(SenseiSchema schema, Set<String> numbers) {
    this.schema = schema;
    this.numbers = numbers;
  }

  /** Why Sensei could not index {@code document}; null where it can. */
  String trouble(JSONObject document) {
    try {
      Long.parseLong(document.getString(schema.getUidField()));
    } catch (JSONException | NumberFormatException failure) {
      return "it has no number in " + schema.getUidField();
    }
    for (FieldDefinition column : schema.getFieldDefMap().values()) {
      if (column.isMeta && document.has(column.fromField)) {
        String value = document.optString(column.fromField);
        List<String> values =
            column.isMulti
                ? DefaultJsonSchemaInterpreter.tokenize(value, column.delim)
                : List.of(value);
        if (values.size() > BigNestedIntArray.MAX_ITEMS) {
          return column.name + " has more than " + BigNestedIntArray.MAX_ITEMS + " values";
        }
        for (String each : values) {
          String why = trouble(column, each);
          if (why != null) {
            return column.name + ": " + why;
          }
        }
      }
    }
    return null;
  }

  private String trouble(FieldDefinition column, String value) {
    if (numbers.contains(column.name) && !NUMBER.matcher(value).matches()) {
      return "not a number of this field's type: " + shown(value);
    }
    if (value.length() > IndexWriter.MAX_TERM_LENGTH / 4
        && value.getBytes(StandardCharsets.UTF_8).length > IndexWriter.MAX_TERM_LENGTH) {
      return "more than " + IndexWriter.MAX_TERM_LENGTH + " bytes in one value";
    }
    return null;
  }

  private static String shown(String value) {
    return value.length() > 40 ? value.substring(0, 40) + "…" : value;
  }
}
