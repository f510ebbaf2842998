/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ParallelConsumerPeer BOOTSTRAP TOPIC COUNT CONCURRENCY WORK_US: consumes COUNT messages in key
 * order with Parallel Consumer and prints when the first handler began and the last one ended.
 */
import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class ParallelConsumerPeer {
    public static void main(String[] words) throws Exception {
        long workNs = Long.parseLong(words[4]) * 1000;
        CountDownLatch left = new CountDownLatch(Integer.parseInt(words[2]));
        AtomicLong first = new AtomicLong();
        Properties properties = new Properties();
        properties.put("bootstrap.servers", words[0]);
        properties.put("group.id", "peer-" + ProcessHandle.current().pid());
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("key.deserializer", ByteArrayDeserializer.class);
        properties.put("value.deserializer", ByteArrayDeserializer.class);
        var options = ParallelConsumerOptions.<byte[], byte[]>builder()
            .ordering(ParallelConsumerOptions.ProcessingOrder.KEY)
            .maxConcurrency(Integer.parseInt(words[3]))
            .consumer(new KafkaConsumer<byte[], byte[]>(properties))
            .build();
        var processor = ParallelStreamProcessor.createEosStreamProcessor(options);
        processor.subscribe(List.of(words[1]));
        processor.poll(context -> {
            first.compareAndSet(0, System.nanoTime());
            if (workNs > 0) {
                LockSupport.parkNanos(workNs);
            }
            left.countDown();
        });
        boolean done = left.await(100, TimeUnit.SECONDS);
        System.out.printf("{\"done\": %b, \"seconds\": %.4f}%n", done,
                          (System.nanoTime() - first.get()) / 1e9);
        System.out.flush();
        Runtime.getRuntime().halt(done ? 0 : 1);
    }
}
