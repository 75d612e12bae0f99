// Members of share groups, of Kafka's own client (`KafkaShareConsumer`), several in one Java, since a start costs seconds. Told what to do by
// lines on its standard input, one after another.
//
// In: the name of a member, then what it shall do: `open SERVERS GROUP TOPIC NAME=VALUE…`, `poll MS`, `ack PARTITION OFFSET TYPE`, `commit`,
// `close`. Out: a line of JSON for each.

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

public class ShareMembers {
    record Member(KafkaShareConsumer<String, String> consumer, Map<String, ConsumerRecord<String, String>> seen) {
    }

    static final Map<String, Member> members = new HashMap<>();

    public static void main(String[] unused) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                out.println(answer(line.split(" ")));
            } catch (Exception error) {
                out.println("{\"error\": \"" + error.getClass().getSimpleName() + "\"}");
            }
        }
    }

    static void open(String[] words) {
        Properties configs = new Properties();
        configs.put("bootstrap.servers", words[2]);
        configs.put("group.id", words[3]);
        for (int index = 5; index < words.length; index++) {
            String[] pair = words[index].split("=", 2);
            configs.put(pair[0], pair[1]);
        }
        KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(configs, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(words[4]));
        members.put(words[0], new Member(consumer, new HashMap<>()));
    }

    static String answer(String[] words) {
        StringBuilder told = new StringBuilder();
        Member member = members.get(words[0]);
        switch (words[1]) {
            case "open":
                open(words);
                return "{\"opened\": true}";
            case "poll":
                for (ConsumerRecord<String, String> record : member.consumer.poll(Duration.ofMillis(Long.parseLong(words[2])))) {
                    member.seen.put(record.partition() + " " + record.offset(), record);
                    told.append(told.length() == 0 ? "" : ", ").append(String.format("[%d, %d, \"%s\", %d]", record.partition(), record.offset(), record.value(), record.deliveryCount().orElse((short) 0)));
                }
                return "{\"records\": [" + told + "]}";
            case "ack":
                member.consumer.acknowledge(member.seen.get(words[2] + " " + words[3]), AcknowledgeType.valueOf(words[4]));
                return "{\"acknowledged\": true}";
            case "commit":
                member.consumer.commitSync().forEach((partition, error) -> told.append(told.length() == 0 ? "" : ", ").append(String.format("\"%s\": %s", partition.topicPartition(), error.map(one -> "\"" + one.getClass().getSimpleName() + "\"").orElse("null"))));
                return "{\"committed\": {" + told + "}}";
            case "close":
                members.remove(words[0]).consumer.close();
                return "{\"closed\": true}";
            default:
                return "{\"error\": \"unknown\"}";
        }
    }
}
