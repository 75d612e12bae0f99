import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;

/** Reads keys and values of `__consumer_offsets` in hexadecimal, and writes what Kafka's own reader makes of them:
 *  the value as JSON, and the bytes that Kafka writes for the same. */
public class GroupRecords {
    public static void main(String[] arguments) throws Exception {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        HexFormat hex = HexFormat.of();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            CoordinatorRecord record =
                serde.deserialize(ByteBuffer.wrap(hex.parseHex(words[0])), ByteBuffer.wrap(hex.parseHex(words[1])));
            System.out.println(
                hex.formatHex(serde.serializeKey(record)) + " " + hex.formatHex(serde.serializeValue(record)) + " "
                    + CoordinatorRecordJsonConverters.writeRecordValueAsJson(record.value().message(), record.value().version()));
        }
    }
}
