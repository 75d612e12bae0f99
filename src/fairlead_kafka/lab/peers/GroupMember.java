// A member of a group, which prints what it reads until SIGTERM; see group_member.py.
// Arguments: topic, then key=value configs.

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class GroupMember {
    public static void main(String[] arguments) throws Exception {
        Properties config = new Properties();
        for (int i = 1; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            config.put(pair[0], pair[1]);
        }
        KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                main.join();
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }));
        consumer.subscribe(List.of(arguments[0]));
        try {
            while (true) {
                var records = consumer.poll(Duration.ofMillis(100));
                long now = System.currentTimeMillis();
                StringBuilder said = new StringBuilder();
                for (TopicPartition of : records.partitions()) {
                    List<ConsumerRecord<byte[], byte[]>> rows = records.records(of);
                    ConsumerRecord<byte[], byte[]> first = rows.get(0);
                    said.append(now).append(' ').append(of.partition()).append(' ').append(first.offset())
                            .append(' ').append(rows.get(rows.size() - 1).offset()).append(' ')
                            .append(first.timestamp()).append('\n');
                }
                System.out.print(said);
                System.out.flush();
            }
        } catch (WakeupException ended) {
            // SIGTERM
        } finally {
            consumer.close();
        }
    }
}
