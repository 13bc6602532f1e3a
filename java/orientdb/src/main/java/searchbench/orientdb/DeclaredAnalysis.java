package searchbench.orientdb;

import java.util.regex.Pattern;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.miscellaneous.LengthFilter;
import org.apache.lucene.analysis.pattern.PatternTokenizer;

/**
 * The declared analysis for a Lucene index of OrientDB, which takes an analyzer by the name of a
 * class with a constructor without arguments. None of those that come with it splits so.
 */
public final class DeclaredAnalysis extends Analyzer {
    private static final Pattern SEPARATORS = Pattern.compile("[^\\p{L}\\p{N}]+");

    /** Longer words, in UTF-16 units, could exceed the 32,766 bytes of UTF-8 that Lucene takes. */
    private static final int LONGEST = 10_922;

    /** Called by OrientDB. */
    public DeclaredAnalysis() {}

    @Override
    protected TokenStreamComponents createComponents(String field) {
        Tokenizer runs = new PatternTokenizer(SEPARATORS, -1);
        return new TokenStreamComponents(
                runs, new LengthFilter(new LowerCaseFilter(runs), 1, LONGEST));
    }
}
