package searchbench.sensei;

import java.io.IOException;
import java.io.Reader;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.analysis.tokenattributes.OffsetAttribute;
import org.apache.lucene.analysis.tokenattributes.PositionIncrementAttribute;
import org.apache.lucene.index.IndexWriter;

/**
 * The declared analysis: a term is a longest run of letters and digits (Unicode general category L*
 * or N*), each character lowered on its own by its simple mapping.
 *
 * <p>A word of more than 32,766 bytes, which Lucene cannot hold, is dropped and its position kept.
 */
public final class Analysis extends Analyzer {
  @Override
  protected TokenStreamComponents createComponents(String field, Reader text) {
    return new TokenStreamComponents(new Words(text));
  }

  /** All terms of {@code text} in order, as Lucene indexes them. */
  List<String> terms(String text) throws IOException {
    List<String> found = new ArrayList<>();
    try (TokenStream stream = tokenStream("text", new StringReader(text))) {
      CharTermAttribute term = stream.getAttribute(CharTermAttribute.class);
      stream.reset();
      while (stream.incrementToken()) {
        found.add(term.toString());
      }
      stream.end();
    }
    return found;
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

  private static final class Words extends Tokenizer {
    private final CharTermAttribute term = addAttribute(CharTermAttribute.class);
    private final OffsetAttribute offset = addAttribute(OffsetAttribute.class);
    private final PositionIncrementAttribute position =
        addAttribute(PositionIncrementAttribute.class);
    private String text = "";
    private int here;

    Words(Reader text) {
      super(text);
    }

    @Override
    public boolean incrementToken() {
      clearAttributes();
      for (int skipped = 0; next(); skipped++) {
        // A unit has at most three bytes.
        boolean fits =
            term.length() <= IndexWriter.MAX_TERM_LENGTH / 3
                || bytes(term) <= IndexWriter.MAX_TERM_LENGTH;
        if (fits) {
          position.setPositionIncrement(1 + skipped);
          return true;
        }
      }
      return false;
    }

    private static int bytes(CharSequence word) {
      int sum = 0;
      for (int i = 0; i < word.length(); i++) {
        char unit = word.charAt(i);
        // Each half of a surrogate pair counts two of its four bytes.
        sum += unit < 0x80 ? 1 : unit < 0x800 || Character.isSurrogate(unit) ? 2 : 3;
      }
      return sum;
    }

    /** The next word into {@code term}; false at the end of the text. */
    private boolean next() {
      while (here < text.length() && !isWord(text.codePointAt(here))) {
        here += Character.charCount(text.codePointAt(here));
      }
      int start = here;
      term.setEmpty();
      while (here < text.length()) {
        int codePoint = text.codePointAt(here);
        if (!isWord(codePoint)) {
          break;
        }
        here += Character.charCount(codePoint);
        int lowered = Character.toLowerCase(codePoint);
        if (Character.isBmpCodePoint(lowered)) {
          term.append((char) lowered);
        } else {
          term.append(Character.highSurrogate(lowered)).append(Character.lowSurrogate(lowered));
        }
      }
      offset.setOffset(correctOffset(start), correctOffset(here));
      return here > start;
    }

    @Override
    public void reset() throws IOException {
      super.reset();
      StringBuilder all = new StringBuilder();
      char[] some = new char[8192];
      for (int count = input.read(some); count > 0; count = input.read(some)) {
        all.append(some, 0, count);
      }
      text = all.toString();
      here = 0;
    }

    @Override
    public void end() {
      int last = correctOffset(text.length());
      offset.setOffset(last, last);
    }
  }
}
