// Commits transactions; see committing.py. Arguments: bootstrap servers, topic, partitions, records to each of
// them, transactions that are cold, seconds until warm, seconds of warm, start in seconds of the monotonic clock.

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class Committing {
    private static final byte[] VALUE = ("a value of a hundred bytes, as an order or a click might be, with some words "
            + "and a few numbers 0123").getBytes(StandardCharsets.US_ASCII);
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private static double nowS() {
        return System.nanoTime() / 1e9;
    }

    private static double cpuS() {
        return SYSTEM.getProcessCpuTime() / 1e9;
    }

    private static long peakMemoryMb() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) / 1024;
            }
        }
        return 0;
    }

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        int records = Integer.parseInt(arguments[3]);
        int transactions = Integer.parseInt(arguments[4]);
        double warmAfterS = Double.parseDouble(arguments[5]);
        double warmForS = Double.parseDouble(arguments[6]);
        double startedS = Double.parseDouble(arguments[7]);
        double beganS = nowS();
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("transactional.id", "committing-" + topic);
        double firstS = 0, coldS = 0, coldCpuS = 0, warmSinceS = -1, warmCpuS = 0, warmS = 0;
        int done = 0;
        List<Double> commitsMs = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            while (true) {
                producer.beginTransaction();
                for (int partition = 0; partition < partitions; partition++) {
                    for (int record = 0; record < records; record++) {
                        producer.send(new ProducerRecord<>(topic, partition, null, VALUE));
                    }
                }
                double commitS = nowS();
                producer.commitTransaction();
                double now = nowS();
                done++;
                if (done == 1) {
                    firstS = now - startedS;
                }
                if (done == transactions) {
                    coldS = now - startedS;
                    coldCpuS = cpuS();
                }
                if (warmSinceS >= 0) {
                    commitsMs.add(1000 * (now - commitS));
                    if (now - warmSinceS >= warmForS) {
                        warmS = now - warmSinceS;
                        warmCpuS = cpuS() - warmCpuS;
                        break;
                    }
                } else if (done >= transactions && now - beganS >= warmAfterS) {
                    warmSinceS = now;
                    warmCpuS = cpuS();
                }
            }
        }
        Collections.sort(commitsMs);
        int count = commitsMs.size();
        System.out.println(String.format(Locale.ROOT,
                "{\"first_s\": %f, \"cold_s\": %f, \"cold_cpu_s\": %f, \"warm_transactions\": %d, \"warm_s\": %f, "
                        + "\"warm_cpu_s\": %f, \"p50_ms\": %f, \"p99_ms\": %f, \"transactions\": %d, \"rss_mb\": %d}",
                firstS, coldS, coldCpuS, count, warmS, warmCpuS, commitsMs.get(count / 2),
                commitsMs.get(count * 99 / 100), done, peakMemoryMb()));
    }
}
