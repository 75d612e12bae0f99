// Kafka's own Java producer, pressed: the twin of `pressed.py`, which says what is done. Run from source by `java PressedProducer.java`.
// Arguments: bootstrap.servers topic keyed|unkeyed partitions faulty,faulty size rate warmup_ms baseline_ms settling_ms fault_ms key=value...

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

public class PressedProducer {
    static final int KEYS = 3_000;
    static final int SAMPLE_EVERY = 16;
    static final int SAMPLES_MAX = 1 << 20;

    static boolean[] healthy;
    static volatile Phase phase;

    static final class Phase {
        final AtomicLongArray acked = new AtomicLongArray(healthy.length);
        final AtomicLong failed = new AtomicLong();
        final long[] latencies = new long[SAMPLES_MAX];
        volatile int sampled;
        long startedNs = System.nanoTime();
        double seconds;

        void acked(RecordMetadata metadata) { // on the producer's one thread
            long count = acked.incrementAndGet(metadata.partition());
            if (count % SAMPLE_EVERY == 0 && healthy[metadata.partition()] && sampled < SAMPLES_MAX) {
                latencies[sampled] = System.currentTimeMillis() - metadata.timestamp();
                sampled++;
            }
        }

        String figures() {
            long all = 0, good = 0;
            for (int partition = 0; partition < healthy.length; partition++) {
                all += acked.get(partition);
                good += healthy[partition] ? acked.get(partition) : 0;
            }
            int count = sampled;
            long[] ordered = Arrays.copyOf(latencies, count);
            Arrays.sort(ordered);
            String p99 = count == 0 ? "null" : ordered[Math.min(count - 1, (int) (count * 0.99))] + ".0";
            return String.format(
                Locale.ROOT, "{\"healthy_records_per_s\": %d, \"p99_ms\": %s, \"acked\": %d, \"failed\": %d}",
                Math.round(good / seconds), p99, all, failed.get());
        }
    }

    static Phase enter(long milliseconds) throws InterruptedException {
        Phase entered = new Phase();
        phase = entered;
        Thread.sleep(milliseconds);
        entered.seconds = (System.nanoTime() - entered.startedNs) / 1e9;
        return entered;
    }

    static void watch(long warmup, long baseline, long settling, long fault) {
        try {
            Thread.sleep(warmup);
            Phase before = enter(baseline);
            System.out.println("fault");
            System.out.flush();
            enter(settling);
            Phase after = enter(fault);
            phase = new Phase();
            long peakKb = Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith("VmHWM")).map(line -> line.replaceAll("\\D", "")).mapToLong(Long::parseLong).findFirst().orElse(0);
            System.out.printf("{\"baseline\": %s, \"fault\": %s, \"rss_mb\": %d}%n", before.figures(), after.figures(), peakKb / 1024);
            System.out.flush();
        } catch (Exception error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(0);
    }

    public static void main(String[] words) throws Exception {
        String topic = words[1];
        boolean keyed = words[2].equals("keyed");
        healthy = new boolean[Integer.parseInt(words[3])];
        Arrays.fill(healthy, true);
        for (String faulty : words[4].split(",")) {
            healthy[Integer.parseInt(faulty)] = false;
        }
        byte[] value = new byte[Integer.parseInt(words[5])];
        for (int index = 0, state = 1; index < value.length; index++) {
            state = (1_103_515_245 * state + 12_345) & Integer.MAX_VALUE;
            value[index] = (byte) (65 + (state >> 16) % 26);
        }
        long rate = Long.parseLong(words[6]);
        long[] milliseconds = Arrays.stream(words, 7, 11).mapToLong(Long::parseLong).toArray();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("acks", "all");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        for (int index = 11; index < words.length; index++) {
            String[] pair = words[index].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        byte[][] keys = new byte[KEYS][];
        for (int number = 0; number < KEYS; number++) {
            keys[number] = keyed ? ("key-" + number).getBytes(StandardCharsets.UTF_8) : null;
        }
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
        producer.partitionsFor(topic);
        phase = new Phase();
        Thread watcher = new Thread(() -> watch(milliseconds[0], milliseconds[1], milliseconds[2], milliseconds[3]));
        watcher.setDaemon(true);
        watcher.start();
        long started = System.nanoTime();
        for (long number = 0; ; number++) {
            while (rate > 0 && number > (System.nanoTime() - started) / 1_000_000_000.0 * rate) {
                Thread.sleep(1);
            }
            // What send refuses, for want of memory or else, comes through the callback as well.
            producer.send(new ProducerRecord<>(topic, keys[(int) (number % KEYS)], value), (metadata, error) -> {
                if (error == null) {
                    phase.acked(metadata);
                } else {
                    phase.failed.incrementAndGet();
                }
            });
        }
    }
}
