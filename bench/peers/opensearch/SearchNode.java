import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

/**
 * One node of OpenSearch in this process, on the loopback interface, alone in its cluster and without security: {@code
 * SearchNode DIRECTORY PORT}. Its translog is flushed to disk for every request, as is its default.
 */
public final class SearchNode {
  private SearchNode() {}

  /** A node takes the plugins that it is given only from a class of one's own. */
  private static final class LoopbackNode extends Node {
    private LoopbackNode(Settings settings, List<Class<? extends Plugin>> plugins) {
      super(new Environment(settings, null), plugins, false);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Settings settings =
        Settings.builder()
            .put("path.home", arguments[0])
            .put("node.name", "peer")
            .put("cluster.name", "peer")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.type", "netty4")
            .put("http.port", arguments[1])
            .put("transport.type", "netty4")
            .put("transport.port", "0")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
    Node node = new LoopbackNode(settings, List.of(Netty4Plugin.class, CommonAnalysisPlugin.class));
    Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node)));
    node.start();
    new CountDownLatch(1).await();
  }

  private static void close(Node node) {
    try {
      node.close();
    } catch (java.io.IOException failed) {
      throw new java.io.UncheckedIOException(failed);
    }
  }
}
