package searchbench.lucene;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.Set;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogByteSizeMergePolicy;
import org.apache.lucene.index.NoMergePolicy;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.index.Term;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.store.IOContext;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.store.NIOFSDirectory;

/**
 * One Lucene index on disk. Document numbers follow the order of ingest: one thread adds at a time,
 * and only neighbouring segments are merged. Guarded by the lock of {@link Index}.
 */
final class Part {
  private final Analyzer analyzer;
  private final double bufferMb;

  /** Whether segments are merged along the way; not if one merge at the end replaces them all. */
  private final boolean mergesAlong;

  private final FSDirectory disk;

  /** The copy that is read, where the index is to be in memory; else null. */
  private final ByteBuffersDirectory ram;

  /** Null until documents come in, and again after {@link #settle}. */
  private IndexWriter writer;

  Part(Path place, Options options, Analyzer analyzer) throws IOException {
    this.analyzer = analyzer;
    this.bufferMb = (double) options.number("indexing_memory_mb") / options.number("parts");
    this.mergesAlong = options.is("segments", "as-is") || options.number("refresh_ms") > 0;
    Files.createDirectories(place);
    this.disk =
        options.is("directory", "nio") ? new NIOFSDirectory(place) : new MMapDirectory(place);
    this.ram = options.is("directory", "ram") ? new ByteBuffersDirectory() : null;
  }

  private IndexWriter writer() throws IOException {
    if (writer == null) {
      IndexWriterConfig config = new IndexWriterConfig(analyzer);
      config.setRAMBufferSizeMB(bufferMb);
      config.setMergePolicy(
          mergesAlong ? new LogByteSizeMergePolicy() : NoMergePolicy.INSTANCE);
      writer = new IndexWriter(disk, config);
    }
    return writer;
  }

  void create() throws IOException {
    writer().commit();
  }

  void add(Document document) throws IOException {
    writer().addDocument(document);
  }

  /** Removes the documents that have a term. */
  void remove(Term term) throws IOException {
    writer().deleteDocuments(term);
  }

  void commit() throws IOException {
    if (writer != null) {
      writer.commit();
    }
  }

  /**
   * Commits; merges into one segment if asked; waits until nothing runs in the background. The
   * writer stays until {@link #release}, so that files of open readers are still accounted for.
   */
  void settle(boolean oneSegment) throws IOException {
    IndexWriter open = writer();
    // Merges that run are waited for by forceMerge, and otherwise by release.
    if (oneSegment) {
      LogByteSizeMergePolicy atOnce = new LogByteSizeMergePolicy();
      atOnce.setMergeFactor(Integer.MAX_VALUE);
      open.getConfig().setMergePolicy(atOnce);
      open.forceMerge(1);
    }
    open.commit();
  }

  /** Gives the indexing memory back, and removes files that nobody reads any more. */
  void release() throws IOException {
    if (writer != null) {
      IndexWriter open = writer;
      writer = null;
      open.deleteUnusedFiles();
      open.close();
    }
  }

  /** Ends writing after an error; what was not committed is lost. */
  void abandon() {
    IndexWriter open = writer;
    writer = null;
    if (open != null) {
      try {
        open.rollback();
      } catch (IOException again) {
        System.err.println("rollback failed: " + again.getMessage());
      }
    }
  }

  /** A reader of the last commit. */
  DirectoryReader reader() throws IOException {
    if (ram != null) {
      copyToRam();
      return DirectoryReader.open(ram);
    }
    return DirectoryReader.open(disk);
  }

  /** A near-real-time reader: sees what was added, committed or not. Null: nothing is new. */
  DirectoryReader fresh(DirectoryReader before) throws IOException {
    if (writer == null) {
      return null;
    }
    if (ram != null) {
      writer.commit();
      return reader();
    }
    return DirectoryReader.openIfChanged(before, writer);
  }

  /** Files never change once written, so only new ones are copied. */
  private void copyToRam() throws IOException {
    Collection<String> wanted = SegmentInfos.readLatestCommit(disk).files(true);
    Set<String> known = new HashSet<>(Arrays.asList(ram.listAll()));
    for (String file : wanted) {
      if (!known.contains(file)) {
        ram.copyFrom(disk, file, file, IOContext.READONCE);
      }
    }
    known.removeAll(wanted);
    for (String file : known) {
      ram.deleteFile(file);
    }
  }
}
