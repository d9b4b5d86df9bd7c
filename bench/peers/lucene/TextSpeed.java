import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
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
 * The top ten of each query in Lucene, one thread: with the segments that its own merges have left, and with one.
 *
 * <p>{@code TextSpeed DOCUMENTS.ndjson QUERIES.ndjson DIRECTORY STORES} prints a JSON line for the index, and then answers each
 * line of its input, {@code {"form":"one|merged","rounds":N}}, when all queries were asked as often of this form: {@code
 * {"us":[..]}}, medians in microseconds. Both files are as the program text_speed of the engine reads them, and the queries are
 * read before their time is taken. With {@code true} for STORES each document is stored, too. A query that is asked again and
 * again has its filter cached, as Lucene does by itself.
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

  /** Medians by query. */
  private static String answer(IndexSearcher searcher, List<Asked> queries, int rounds) throws IOException {
    double[][] samples = new double[queries.size()][rounds];
    for (int round = 0; round < rounds; round++) {
      for (int at = 0; at < queries.size(); at++) {
        long started = System.nanoTime();
        queries.get(at).run(searcher);
        samples[at][round] = (System.nanoTime() - started) / 1e3;
      }
    }
    double[] medians = new double[queries.size()];
    for (int at = 0; at < medians.length; at++) {
      Arrays.sort(samples[at]);
      medians[at] = samples[at][rounds / 2];
    }
    return String.format("{\"us\":%s}", Arrays.toString(medians));
  }

  /** All documents of a file, as Lucene's own merges leave them. */
  private static void index(Directory directory, Analyzer analyzer, Path documents, boolean stores) throws IOException {
    IndexWriterConfig config = new IndexWriterConfig(analyzer).setRAMBufferSizeMB(48).setUseCompoundFile(false);
    try (IndexWriter writer = new IndexWriter(directory, config);
        BufferedReader lines = Files.newBufferedReader(documents)) {
      int number = 0;
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        writer.addDocument(document(line, number, stores));
        number += 1;
      }
    }
  }

  private static void mergeToOne(Directory directory, Analyzer analyzer) throws IOException {
    try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(analyzer).setUseCompoundFile(false))) {
      writer.forceMerge(1);
    }
  }

  private static long bytes(Directory directory) throws IOException {
    long sum = 0;
    for (String file : directory.listAll()) {
      sum += directory.fileLength(file);
    }
    return sum;
  }

  public static void main(String[] arguments) throws IOException {
    boolean stores = Boolean.parseBoolean(arguments[3]);
    Analyzer analyzer = new EnglishAnalyzer();
    List<Asked> queries = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(arguments[1]))) {
      queries.add(Asked.of(analyzer, line));
    }
    try (FSDirectory directory = new MMapDirectory(Path.of(arguments[2]))) {
      index(directory, analyzer, Path.of(arguments[0]), stores);
      // A reader keeps the files that it has opened.
      try (DirectoryReader merged = DirectoryReader.open(directory)) {
        mergeToOne(directory, analyzer);
        try (DirectoryReader one = DirectoryReader.open(directory)) {
          System.out.printf("{\"segments\":%d,\"bytes\":%d}%n", merged.leaves().size(), bytes(directory));
          IndexSearcher searchMerged = new IndexSearcher(merged);
          IndexSearcher searchOne = new IndexSearcher(one);
          BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
          for (String command = commands.readLine(); command != null; command = commands.readLine()) {
            IndexSearcher searcher = member(command, "form").equals("one") ? searchOne : searchMerged;
            System.out.println(answer(searcher, queries, Integer.parseInt(member(command, "rounds"))));
          }
        }
      }
    }
  }
}
