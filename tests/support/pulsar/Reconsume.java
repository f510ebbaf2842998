// SPDX-License-Identifier: Apache-2.0
//
// The retries of the official Java client, which no other client has: receives COUNT messages of a
// topic and its retry topic, and says of each that it is to come later. Runs from its source:
//   java -cp JARS/* Reconsume.java URL TOPIC SUBSCRIPTION COUNT DELAY_MS MAX SECONDS
// What it received is printed, one JSON object a line. It fails when one does not come in SECONDS.

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

public class Reconsume {
    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    private static void print(Message<byte[]> message) {
        StringBuilder line = new StringBuilder("{\"topic\":" + quoted(message.getTopicName()));
        line.append(",\"id\":").append(quoted(message.getMessageId().toString()));
        line.append(",\"value\":").append(quoted(new String(message.getData())));
        line.append(",\"key\":").append(message.hasKey() ? quoted(message.getKey()) : "null");
        line.append(",\"properties\":{");
        String separator = "";
        for (Map.Entry<String, String> each : message.getProperties().entrySet()) {
            line.append(separator).append(quoted(each.getKey())).append(':');
            line.append(quoted(each.getValue()));
            separator = ",";
        }
        System.out.println(line.append("}}"));
    }

    public static void main(String[] words) throws Exception {
        int count = Integer.parseInt(words[3]);
        long delayMs = Long.parseLong(words[4]);
        DeadLetterPolicy policy =
            DeadLetterPolicy.builder().maxRedeliverCount(Integer.parseInt(words[5])).build();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(words[0]).build();
             Consumer<byte[]> consumer = client.newConsumer()
                 .topic(words[1]).subscriptionName(words[2])
                 .subscriptionType(SubscriptionType.Shared)
                 .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                 .enableRetry(true).deadLetterPolicy(policy).subscribe()) {
            for (int i = 0; i < count; i++) {
                Message<byte[]> message =
                    consumer.receive(Integer.parseInt(words[6]), TimeUnit.SECONDS);
                if (message == null) {
                    System.err.println(i + " of " + count + " messages came");
                    System.exit(1);
                }
                print(message);
                consumer.reconsumeLater(message, delayMs, TimeUnit.MILLISECONDS);
            }
        }
        System.exit(0); // threads of the client may linger
    }
}
