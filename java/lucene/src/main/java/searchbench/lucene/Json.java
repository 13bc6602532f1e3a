package searchbench.lucene;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.type.LogicalType;
import java.io.IOException;

/** JSON as strictly as FORMATS.md means it: no unknown keys, no numbers for strings. */
final class Json {
  private static final int MAX_DEPTH = 128;

  private static final JsonFactory FACTORY =
      JsonFactory.builder()
          .streamReadConstraints(
              StreamReadConstraints.builder()
                  .maxNestingDepth(MAX_DEPTH)
                  .maxStringLength(Integer.MAX_VALUE)
                  .build())
          // Names are those of a few fields, or hostile: no need to intern them.
          .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
          .build();

  static final JsonMapper MAPPER =
      JsonMapper.builder(FACTORY)
          .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
          .withCoercionConfig(
              LogicalType.Textual,
              config -> {
                config.setCoercion(CoercionInputShape.Integer, CoercionAction.Fail);
                config.setCoercion(CoercionInputShape.Float, CoercionAction.Fail);
                config.setCoercion(CoercionInputShape.Boolean, CoercionAction.Fail);
              })
          .build();

  private Json() {}

  /** The payload of a request, as a value of {@code type}. */
  static <T> T read(byte[] bytes, int at, int length, Class<T> type, String verb) throws Failure {
    T value;
    try {
      value = MAPPER.readValue(bytes, at, length, type);
    } catch (JsonProcessingException wrong) {
      throw Failure.error(
          "the payload of %s is not as FORMATS.md says: %s", verb, sentence(wrong));
    } catch (IOException wrong) {
      throw Failure.error("the payload of %s cannot be read: %s", verb, wrong.getMessage());
    }
    if (value == null) {
      throw Failure.error("the payload of %s is not as FORMATS.md says: it is null", verb);
    }
    return value;
  }

  /** What Jackson found wrong, in its first line. */
  static String sentence(JsonProcessingException wrong) {
    Throwable cause = wrong.getCause();
    String said =
        cause instanceof IllegalArgumentException ? cause.getMessage() : wrong.getOriginalMessage();
    return said == null ? wrong.getClass().getSimpleName() : said.lines().findFirst().orElse("");
  }

  /** {@code text} in quotation marks, as JSON writes it; at most forty characters of it. */
  static String quoted(String text) {
    boolean cut = text.codePointCount(0, text.length()) > 40;
    String shown = cut ? text.substring(0, text.offsetByCodePoints(0, 40)) : text;
    try {
      return MAPPER.writeValueAsString(shown) + (cut ? "..." : "");
    } catch (JsonProcessingException impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
