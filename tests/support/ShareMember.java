// A member of a share group, of Kafka's own client (`KafkaShareConsumer`), told what to do by lines on its standard input.
//
// Arguments: bootstrap servers, group, topic, then configs as NAME=VALUE. In: `poll MS`, `ack PARTITION OFFSET TYPE`, `commit`, `close`. Out: a line of JSON for each.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ShareMember {
    public static void main(String[] arguments) throws Exception {
        Properties configs = new Properties();
        configs.put("bootstrap.servers", arguments[0]);
        configs.put("group.id", arguments[1]);
        for (int index = 3; index < arguments.length; index++) {
            String[] pair = arguments[index].split("=", 2);
            configs.put(pair[0], pair[1]);
        }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, ConsumerRecord<String, String>> seen = new HashMap<>();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(configs, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(arguments[2]));
            for (String line = in.readLine(); line != null && !line.equals("close"); line = in.readLine()) {
                try {
                    out.println(answer(consumer, seen, line.split(" ")));
                } catch (Exception error) {
                    out.println("{\"error\": \"" + error.getClass().getSimpleName() + "\"}");
                }
            }
        }
        out.println("{\"closed\": true}");
    }

    static String answer(KafkaShareConsumer<String, String> consumer, Map<String, ConsumerRecord<String, String>> seen, String[] words) {
        StringBuilder told = new StringBuilder();
        switch (words[0]) {
            case "poll":
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(Long.parseLong(words[1])))) {
                    seen.put(record.partition() + " " + record.offset(), record);
                    told.append(told.length() == 0 ? "" : ", ").append(String.format("[%d, %d, \"%s\", %d]", record.partition(), record.offset(), record.value(), record.deliveryCount().orElse((short) 0)));
                }
                return "{\"records\": [" + told + "]}";
            case "ack":
                consumer.acknowledge(seen.get(words[1] + " " + words[2]), AcknowledgeType.valueOf(words[3]));
                return "{\"acknowledged\": true}";
            case "commit":
                consumer.commitSync().forEach((partition, error) -> told.append(told.length() == 0 ? "" : ", ").append(String.format("\"%s\": %s", partition.topicPartition(), error.map(one -> "\"" + one.getClass().getSimpleName() + "\"").orElse("null"))));
                return "{\"committed\": {" + told + "}}";
            default:
                return "{\"error\": \"unknown\"}";
        }
    }
}
