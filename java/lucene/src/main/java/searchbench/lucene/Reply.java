package searchbench.lucene;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.IndexableField;

/** Writes the reply to a query. */
final class Reply {
  private final View view;
  private final Schema schema;
  private final List<Integer> asked = new ArrayList<>();
  private final Set<String> columns = new HashSet<>();

  Reply(View view, Schema schema, Ask ask) throws Failure {
    this.view = view;
    this.schema = schema;
    for (String name : ask.fields()) {
      int index = schema.indexOf(name);
      if (!schema.fields().get(index).stored()) {
        throw Failure.error(
            "field %s is not stored, so it cannot be returned", Json.quoted(name));
      }
      asked.add(index);
      columns.add(Schema.column(index));
    }
  }

  void write(Ask ask, Search.Found found, OutputStream out) throws IOException {
    try (JsonGenerator json = Json.MAPPER.createGenerator(out)) {
      json.writeStartObject();
      json.writeNumberField("total", found.total());
      json.writeArrayFieldStart("hits");
      for (Search.Hit hit : found.hits()) {
        hit(json, hit);
      }
      json.writeEndArray();
      json.writeObjectFieldStart("facets");
      for (int i = 0; i < ask.facets().size(); i++) {
        json.writeFieldName(ask.facets().get(i).field());
        counts(json, found.counts().get(i).best());
      }
      json.writeEndObject();
      json.writeFieldName("groups");
      boolean grouped = ask.groupBy() != null;
      counts(json, grouped ? found.counts().get(ask.facets().size()).best() : List.of());
      json.writeArrayFieldStart("warnings");
      json.writeEndArray();
      json.writeEndObject();
    }
  }

  private void hit(JsonGenerator json, Search.Hit hit) throws IOException {
    json.writeStartArray();
    json.writeString(view.id(hit.document()));
    if (hit.score() == null) {
      json.writeNull();
    } else {
      json.writeNumber(hit.score());
    }
    if (!asked.isEmpty()) {
      stored(json, view.stored(hit.document(), columns));
    }
    json.writeEndArray();
  }

  private void stored(JsonGenerator json, Document document) throws IOException {
    json.writeStartObject();
    for (int index : asked) {
      Schema.Field field = schema.fields().get(index);
      IndexableField[] values = document.getFields(Schema.column(index));
      if (values.length == 0) {
        continue;
      }
      json.writeFieldName(field.name());
      switch (field.type()) {
        case TEXT, KEYWORD -> json.writeString(values[0].stringValue());
        case KEYWORDS -> {
          json.writeStartArray();
          for (IndexableField value : values) {
            json.writeString(value.stringValue());
          }
          json.writeEndArray();
        }
        case INTEGER, DATE -> json.writeNumber(values[0].numericValue().longValue());
        case FLOAT -> json.writeNumber(values[0].numericValue().doubleValue());
        case BOOLEAN -> json.writeBoolean(values[0].numericValue().longValue() == 1);
      }
    }
    json.writeEndObject();
  }

  private static void counts(JsonGenerator json, List<Counts.Count> counts) throws IOException {
    json.writeStartArray();
    for (Counts.Count count : counts) {
      json.writeStartArray();
      if (count.value() instanceof String text) {
        json.writeString(text);
      } else if (count.value() instanceof Boolean flag) {
        json.writeBoolean(flag);
      } else if (count.value() instanceof Double number) {
        json.writeNumber(number);
      } else {
        json.writeNumber((Long) count.value());
      }
      json.writeNumber(count.documents());
      json.writeEndArray();
    }
    json.writeEndArray();
  }
}
