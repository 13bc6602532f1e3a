package searchbench.sensei;

import com.senseidb.conf.SenseiConfParams;
import com.senseidb.gateway.SenseiGateway;
import com.senseidb.indexing.DataSourceFilter;
import com.senseidb.indexing.ShardingStrategy;
import java.util.Comparator;
import java.util.Set;
import org.json.JSONObject;
import proj.zoie.impl.indexing.StreamDataProvider;

/** Makes the one {@link Feed}; named in sensei.properties. */
public final class Gateway extends SenseiGateway<JSONObject> {
  @Override
  public StreamDataProvider<JSONObject> buildDataProvider(
      DataSourceFilter<JSONObject> filter,
      String last,
      ShardingStrategy strategy,
      Set<Integer> partitions) {
    return new Feed(last);
  }

  @Override
  public Comparator<String> getVersionComparator() {
    return SenseiConfParams.DEFAULT_VERSION_LONG_COMPARATOR;
  }
}
