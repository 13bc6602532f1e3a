package searchbench.lucene;

import java.util.Collection;

/** The valid name that a mistyped one probably meant. */
final class Nearest {
  private Nearest() {}

  /** The name with the fewest edits (Levenshtein) from {@code word}; the first among equals. */
  static String to(String word, Collection<String> names) {
    String best = "";
    int least = Integer.MAX_VALUE;
    for (String name : names) {
      int edits = edits(word, name);
      if (edits < least) {
        least = edits;
        best = name;
      }
    }
    return best;
  }

  private static int edits(String a, String b) {
    int[] row = new int[b.length() + 1];
    for (int j = 0; j < row.length; j++) {
      row[j] = j;
    }
    for (int i = 0; i < a.length(); i++) {
      int diagonal = row[0];
      row[0] = i + 1;
      for (int j = 0; j < b.length(); j++) {
        int replaced = diagonal + (a.charAt(i) == b.charAt(j) ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = Math.min(replaced, Math.min(row[j], diagonal) + 1);
      }
    }
    return row[b.length()];
  }
}
