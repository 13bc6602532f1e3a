package searchbench.lucene;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Options of the host: {@code --name value}, each with a default, checked before anything starts. */
final class Options {
  /** One option: a whole number between two bounds, one of some words, or any text. */
  private record Spec(String initial, long low, long high, List<String> words) {
    static Spec number(long initial, long low, long high) {
      return new Spec(Long.toString(initial), low, high, List.of());
    }

    static Spec choice(String... words) {
      return new Spec(words[0], 0, -1, List.of(words));
    }

    static Spec text() {
      return new Spec("", 0, -1, List.of());
    }
  }

  private static final Map<String, Spec> SPECS = new LinkedHashMap<>();
  private static final Set<String> COMMON = Set.of("port", "data");

  static {
    SPECS.put("port", Spec.number(0, 0, 65535));
    SPECS.put("data", Spec.text());
    SPECS.put("parts", Spec.number(1, 1, 64));
    SPECS.put("searcher", Spec.choice("shared", "per-thread"));
    SPECS.put("segments", Spec.choice("merged", "as-is"));
    SPECS.put("directory", Spec.choice("mmap", "nio", "ram"));
    SPECS.put("indexing_memory_mb", Spec.number(64, 16, 65536));
    SPECS.put("refresh_ms", Spec.number(0, 0, 3_600_000));
    SPECS.put("keys", Spec.choice("false", "true"));
  }

  private final Map<String, Object> values = new LinkedHashMap<>();

  private Options() {}

  /** Parses {@code --name value} pairs; the failure is one sentence. */
  static Options parse(String[] argv) throws Failure {
    Options options = new Options();
    for (Map.Entry<String, Spec> spec : SPECS.entrySet()) {
      options.values.put(spec.getKey(), value(spec.getKey(), spec.getValue().initial));
    }
    for (int i = 0; i < argv.length; i++) {
      if (!argv[i].startsWith("--")) {
        throw Failure.error("\"%s\" is not an option; options begin with --", argv[i]);
      }
      String name = argv[i].substring(2);
      String text = null;
      int equals = name.indexOf('=');
      if (equals >= 0) {
        text = name.substring(equals + 1);
        name = name.substring(0, equals);
      }
      if (!SPECS.containsKey(name)) {
        String near = Nearest.to(name, SPECS.keySet());
        throw Failure.error("there is no option --%s; did you mean --%s?", name, near);
      }
      if (text == null) {
        i++;
        if (i == argv.length) {
          throw Failure.error("--%s needs a value", name);
        }
        text = argv[i];
      }
      options.values.put(name, value(name, text));
    }
    return options;
  }

  private static Object value(String name, String text) throws Failure {
    Spec spec = SPECS.get(name);
    if (!spec.words.isEmpty()) {
      if (spec.words.contains(text)) {
        return text;
      }
      throw Failure.error(
          "--%s is one of %s, not \"%s\"; did you mean %s?",
          name, String.join(", ", spec.words), text, Nearest.to(text, spec.words));
    }
    if (spec.low > spec.high) {
      return text;
    }
    long number;
    try {
      number = Long.parseLong(text);
    } catch (NumberFormatException wrong) {
      throw Failure.error(
          "--%s is a whole number from %d to %d, not \"%s\"", name, spec.low, spec.high, text);
    }
    if (number < spec.low || number > spec.high) {
      throw Failure.error("--%s is %d to %d, not %d", name, spec.low, spec.high, number);
    }
    return number;
  }

  int number(String name) {
    return Math.toIntExact((Long) values.get(name));
  }

  String text(String name) {
    return (String) values.get(name);
  }

  boolean is(String name, String word) {
    return text(name).equals(word);
  }

  /** The parameters, as facts read them back. */
  Map<String, Object> parameters() {
    Map<String, Object> shown = new LinkedHashMap<>(values);
    shown.put("keys", is("keys", "true"));
    shown.keySet().removeAll(COMMON);
    return shown;
  }
}
