package searchbench.elasticsearch;

import java.util.regex.Pattern;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.miscellaneous.LengthFilter;
import org.apache.lucene.analysis.pattern.PatternTokenizer;
import org.elasticsearch.plugin.NamedComponent;
import org.elasticsearch.plugin.analysis.AnalyzerFactory;

/**
 * The declared analysis as an analyzer of Elasticsearch: what its own module of analyzers would
 * make of {@code pattern}, {@code lowercase} and {@code length}, which OpenSearch is given.
 */
@NamedComponent("searchbench_declared")
public final class DeclaredAnalysis implements AnalyzerFactory {
    private static final Pattern SEPARATORS = Pattern.compile("[^\\p{L}\\p{N}]+");

    /** Longer words, in UTF-16 units, could exceed the 32,766 bytes of UTF-8 that Lucene takes. */
    private static final int LONGEST = 10_922;

    /** Called by the plugin loader. */
    public DeclaredAnalysis() {}

    @Override
    public Analyzer create() {
        return new Analyzer() {
            @Override
            protected TokenStreamComponents createComponents(String field) {
                Tokenizer runs = new PatternTokenizer(SEPARATORS, -1);
                return new TokenStreamComponents(
                        runs, new LengthFilter(new LowerCaseFilter(runs), 1, LONGEST));
            }
        };
    }
}
