package searchbench.lucene;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.analysis.tokenattributes.OffsetAttribute;
import org.apache.lucene.analysis.tokenattributes.PositionIncrementAttribute;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.util.UnicodeUtil;

/**
 * The declared analysis: a term is a longest run of letters and digits (Unicode general category L*
 * or N*), each character lowered on its own by its simple mapping.
 *
 * <p>A word of more than 32,766 bytes, which Lucene cannot hold, is dropped and its position kept.
 */
final class Analysis extends Analyzer {
  /** By UTF-16 unit: 0 for a separator, else the unit in lower case. */
  private static final char[] LOWER = new char[0x10000];

  static {
    for (int c = 0; c < LOWER.length; c++) {
      LOWER[c] = isWord(c) ? (char) Character.toLowerCase(c) : 0;
    }
  }

  private static boolean isWord(int codePoint) {
    switch (Character.getType(codePoint)) {
      case Character.UPPERCASE_LETTER:
      case Character.LOWERCASE_LETTER:
      case Character.TITLECASE_LETTER:
      case Character.MODIFIER_LETTER:
      case Character.OTHER_LETTER:
      case Character.DECIMAL_DIGIT_NUMBER:
      case Character.LETTER_NUMBER:
      case Character.OTHER_NUMBER:
        return true;
      default:
        return false;
    }
  }

  @Override
  protected TokenStreamComponents createComponents(String field) {
    return new TokenStreamComponents(new Words());
  }

  /** All terms of {@code text} in order, as Lucene indexes them. */
  List<String> terms(String text) throws IOException {
    List<String> found = new ArrayList<>();
    try (TokenStream stream = tokenStream("text", text)) {
      CharTermAttribute term = stream.getAttribute(CharTermAttribute.class);
      stream.reset();
      while (stream.incrementToken()) {
        found.add(term.toString());
      }
      stream.end();
    }
    return found;
  }

  /** Whether {@code word} is exactly one term; another cannot be in any index. */
  static boolean isTerm(String word) {
    if (word.isEmpty()) {
      return false;
    }
    for (int i = 0; i < word.length(); ) {
      int c = word.codePointAt(i);
      if (!isWord(c) || Character.toLowerCase(c) != c) {
        return false;
      }
      i += Character.charCount(c);
    }
    return true;
  }

  private static final class Words extends Tokenizer {
    private final CharTermAttribute term = addAttribute(CharTermAttribute.class);
    private final OffsetAttribute offset = addAttribute(OffsetAttribute.class);
    private final PositionIncrementAttribute position =
        addAttribute(PositionIncrementAttribute.class);
    private final char[] read = new char[4096];
    private int here;
    private int end;
    private int before;

    @Override
    public boolean incrementToken() throws IOException {
      clearAttributes();
      int skipped = 0;
      while (next()) {
        int length = term.length();
        boolean fits =
            length <= IndexWriter.MAX_TERM_LENGTH / UnicodeUtil.MAX_UTF8_BYTES_PER_CHAR
                || UnicodeUtil.calcUTF16toUTF8Length(term, 0, length)
                    <= IndexWriter.MAX_TERM_LENGTH;
        if (fits) {
          position.setPositionIncrement(1 + skipped);
          return true;
        }
        skipped++;
      }
      return false;
    }

    /** The next word into {@code term}; false at the end of the text. */
    private boolean next() throws IOException {
      char[] word = term.buffer();
      int length = 0;
      int start = 0;
      while (true) {
        if (here == end && !more()) {
          break;
        }
        int from = before + here;
        char unit = read[here];
        char low = LOWER[unit];
        int second = 0;
        if (Character.isHighSurrogate(unit)) {
          if (here + 1 == end) {
            keepLast();
          }
          if (here + 1 < end && Character.isLowSurrogate(read[here + 1])) {
            int codePoint = Character.toCodePoint(unit, read[here + 1]);
            here++;
            if (isWord(codePoint)) {
              int lowered = Character.toLowerCase(codePoint);
              low = Character.highSurrogate(lowered);
              second = Character.lowSurrogate(lowered);
            }
          }
        }
        here++;
        if (low != 0) {
          if (length == 0) {
            start = from;
          }
          if (length + 2 > word.length) {
            word = term.resizeBuffer(2 * word.length + 2);
          }
          word[length++] = low;
          if (second != 0) {
            word[length++] = (char) second;
          }
        } else if (length > 0) {
          break;
        }
      }
      term.setLength(length);
      offset.setOffset(correctOffset(start), correctOffset(before + here));
      return length > 0;
    }

    private boolean more() throws IOException {
      before += end;
      here = 0;
      end = 0;
      int count = input.read(read, 0, read.length);
      end = Math.max(count, 0);
      return count > 0;
    }

    /** Brings the second half of a surrogate pair that the end of the buffer has cut. */
    private void keepLast() throws IOException {
      before += here;
      read[0] = read[here];
      here = 0;
      int count = input.read(read, 1, read.length - 1);
      end = 1 + Math.max(count, 0);
    }

    @Override
    public void end() throws IOException {
      super.end();
      int last = correctOffset(before + here);
      offset.setOffset(last, last);
    }

    @Override
    public void reset() throws IOException {
      super.reset();
      here = 0;
      end = 0;
      before = 0;
    }
  }
}
