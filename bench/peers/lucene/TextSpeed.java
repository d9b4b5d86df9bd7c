import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.KeywordField;
import org.apache.lucene.document.LongField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.SortedNumericSortField;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.store.MMapDirectory;

/**
 * The top ten of each query in Lucene, one thread, warm: with the segments that its own merges have left, and with one.
 *
 * <p>{@code TextSpeed DOCUMENTS.ndjson QUERIES.ndjson DIRECTORY ROUNDS STORES} prints a JSON line for the index and one for each
 * query: medians in microseconds, and how many documents match at least. Both files are as the program text_speed of the
 * engine reads them, and the queries are read before their time is taken. With {@code true} for STORES each document is stored, too. A query that is asked again and again has its filter cached, as Lucene does by itself.
 */
public final class TextSpeed {
  private static final int LIMIT = 10;
  private static final Pattern MEMBER =
      Pattern.compile("\"([a-z_]+)\":(?:\"((?:[^\"\\\\]|\\\\.)*)\"|(-?[0-9]+))");

  private static String member(String line, String name) {
    Matcher matcher = MEMBER.matcher(line);
    while (matcher.find()) {
      if (matcher.group(1).equals(name)) {
        return matcher.group(2) != null ? matcher.group(2) : matcher.group(3);
      }
    }
    return null;
  }

  /** The generated documents have no escapes in their strings. */
  private static Document document(String line, int number, boolean stores) {
    Document document = new Document();
    if (stores) {
      document.add(new StoredField("_source", line));
    }
    document.add(new StringField("_id", String.format("doc%08d", number), Field.Store.NO));
    Matcher matcher = MEMBER.matcher(line);
    while (matcher.find()) {
      String name = matcher.group(1);
      String text = matcher.group(2);
      if (text == null) {
        document.add(new LongField(name, Long.parseLong(matcher.group(3)), Field.Store.NO));
      } else if (text.indexOf(' ') >= 0) {
        document.add(new TextField(name, text, Field.Store.NO));
      } else {
        document.add(new KeywordField(name, text, Field.Store.NO));
      }
    }
    return document;
  }

  private static List<String> tokens(Analyzer analyzer, String field, String text) throws IOException {
    List<String> tokens = new ArrayList<>();
    try (TokenStream stream = analyzer.tokenStream(field, text)) {
      CharTermAttribute term = stream.addAttribute(CharTermAttribute.class);
      stream.reset();
      while (stream.incrementToken()) {
        tokens.add(term.toString());
      }
      stream.end();
    }
    return tokens;
  }

  private static Query query(Analyzer analyzer, String line) throws IOException {
    String field = member(line, "field");
    String text = member(line, "text");
    String kind = member(line, "kind");
    Query query;
    if (kind.equals("prefix")) {
      query = new PrefixQuery(new Term(field, text));
    } else {
      List<String> words = tokens(analyzer, field, text);
      if (kind.equals("phrase")) {
        query = new PhraseQuery(field, words.toArray(String[]::new));
      } else if (words.size() == 1) {
        query = new TermQuery(new Term(field, words.get(0)));
      } else {
        BooleanQuery.Builder builder = new BooleanQuery.Builder();
        for (String word : words) {
          builder.add(new TermQuery(new Term(field, word)), kind.equals("and") ? Occur.MUST : Occur.SHOULD);
        }
        query = builder.build();
      }
    }
    Query filter = filter(line);
    if (filter == null) {
      return query;
    }
    return new BooleanQuery.Builder().add(query, Occur.MUST).add(filter, Occur.FILTER).build();
  }

  private static Query filter(String line) {
    String keyword = member(line, "filter_keyword");
    if (keyword != null) {
      return KeywordField.newExactQuery("tag", keyword);
    }
    String from = member(line, "filter_from");
    if (from == null) {
      return null;
    }
    long end = Long.parseLong(member(line, "filter_end"));
    return LongField.newRangeQuery("year", Long.parseLong(from), end - 1);
  }

  /** A query as it is asked. */
  private record Asked(Query query, Sort sort) {
    static Asked of(Analyzer analyzer, String line) throws IOException {
      String order = member(line, "sort_field");
      Sort sort = order == null ? null : new Sort(new SortedNumericSortField(order, SortField.Type.LONG, true));
      return new Asked(TextSpeed.query(analyzer, line), sort);
    }

    long run(IndexSearcher searcher) throws IOException {
      if (sort == null) {
        return searcher.search(query, LIMIT).totalHits.value();
      }
      return searcher.search(query, LIMIT, sort).totalHits.value();
    }
  }

  /** Medians by query, in microseconds. */
  private static double[] times(DirectoryReader reader, List<Asked> queries, int rounds) throws IOException {
    IndexSearcher searcher = new IndexSearcher(reader);
    double[][] samples = new double[queries.size()][rounds];
    // Once as many rounds before, for the compiler.
    for (int round = -rounds; round < rounds; round++) {
      for (int at = 0; at < queries.size(); at++) {
        long started = System.nanoTime();
        queries.get(at).run(searcher);
        if (round >= 0) {
          samples[at][round] = (System.nanoTime() - started) / 1e3;
        }
      }
    }
    double[] medians = new double[queries.size()];
    for (int at = 0; at < medians.length; at++) {
      Arrays.sort(samples[at]);
      medians[at] = samples[at][rounds / 2];
    }
    return medians;
  }

  private static long bytes(Directory directory) throws IOException {
    long sum = 0;
    for (String file : directory.listAll()) {
      sum += directory.fileLength(file);
    }
    return sum;
  }

  public static void main(String[] arguments) throws IOException {
    List<String> documents = Files.readAllLines(Path.of(arguments[0]));
    int rounds = Integer.parseInt(arguments[3]);
    boolean stores = Boolean.parseBoolean(arguments[4]);
    Analyzer analyzer = new EnglishAnalyzer();
    List<Asked> queries = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(arguments[1]))) {
      queries.add(Asked.of(analyzer, line));
    }
    try (FSDirectory directory = new MMapDirectory(Path.of(arguments[2]))) {
      long started = System.nanoTime();
      IndexWriterConfig config = new IndexWriterConfig(analyzer).setRAMBufferSizeMB(48).setUseCompoundFile(false);
      IndexWriter writer = new IndexWriter(directory, config);
      for (int number = 0; number < documents.size(); number++) {
        writer.addDocument(document(documents.get(number), number, stores));
      }
      writer.commit();
      double seconds = (System.nanoTime() - started) / 1e9;
      writer.close();
      double[] merged;
      int segments;
      try (DirectoryReader reader = DirectoryReader.open(directory)) {
        segments = reader.leaves().size();
        merged = times(reader, queries, rounds);
      }
      writer = new IndexWriter(directory, new IndexWriterConfig(analyzer).setUseCompoundFile(false));
      writer.forceMerge(1);
      writer.close();
      try (DirectoryReader reader = DirectoryReader.open(directory)) {
        double[] one = times(reader, queries, rounds);
        IndexSearcher searcher = new IndexSearcher(reader);
        System.out.printf(
            "{\"docs\":%d,\"segments\":%d,\"bytes\":%d,\"docs_per_second\":%.0f}%n",
            documents.size(), segments, bytes(directory), documents.size() / seconds);
        for (int at = 0; at < one.length; at++) {
          System.out.printf(
              "{\"one_us\":%.2f,\"merged_us\":%.2f,\"total\":%d}%n",
              one[at], merged[at], queries.get(at).run(searcher));
        }
      }
    }
  }
}
