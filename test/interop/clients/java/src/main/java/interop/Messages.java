package interop;

import static interop.World.TOPIC;
import static interop.World.expect;
import static interop.World.expectEqual;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.iggy.client.blocking.IggyBaseClient;
import org.apache.iggy.consumergroup.Consumer;
import org.apache.iggy.message.HeaderKey;
import org.apache.iggy.message.HeaderKind;
import org.apache.iggy.message.HeaderValue;
import org.apache.iggy.message.Message;
import org.apache.iggy.message.MessageHeader;
import org.apache.iggy.message.MessageId;
import org.apache.iggy.message.Partitioning;
import org.apache.iggy.message.PollingStrategy;

/** Scenarios of sending and polling. */
final class Messages {
    private static final int MIB = 1024 * 1024;
    private static final Partitioning FIRST_PARTITION = Partitioning.partitionId(0L);
    /** Where each key lands on a topic of four partitions: xxHash32 of the key, modulo four. */
    private static final Map<String, Long> PARTITION_OF_KEY =
            Map.of("key-0", 3L, "key-1", 1L, "key-2", 0L, "key-4", 2L, "cust-456", 0L);

    private Messages() {}

    static void partitioning(World world) {
        IggyBaseClient client = world.connect();
        world.createTopic(client, 4);
        for (int number = 0; number < 8; number++) {
            world.send(client, Partitioning.balanced(), "balanced-" + number);
        }
        for (long partition = 0; partition < 4; partition++) {
            expectEqual(texts(world, client, partition).size(), 2, "balanced messages of partition " + partition);
        }
        world.send(client, Partitioning.partitionId(2L), "chosen");
        expectEqual(texts(world, client, 2).get(2), "chosen", "message of a chosen partition");
        PARTITION_OF_KEY.forEach((key, partition) -> {
            world.send(client, Partitioning.messagesKey(key), key);
            expect(texts(world, client, partition).contains(key), "key " + key + " lands in partition " + partition);
        });
    }

    private static List<String> texts(World world, IggyBaseClient client, long partition) {
        return world.poll(client, partition, PollingStrategy.first(), 100).messages().stream()
                .map(World::text)
                .toList();
    }

    static void polling(World world) {
        IggyBaseClient client = world.connect();
        world.createTopic(client, 1);
        world.send(client, FIRST_PARTITION, "first-0", "first-1", "first-2", "first-3", "first-4");
        BigInteger middle = BigInteger.valueOf(System.currentTimeMillis() * 1000 + 1000);
        await(middle);
        world.send(client, FIRST_PARTITION, "second-0", "second-1", "second-2", "second-3", "second-4");
        PollingStrategy next = PollingStrategy.next();
        expectEqual(offsets(world, client, offset(0), 10, false), numbers(0, 10), "from offset 0");
        expectEqual(offsets(world, client, offset(7), 2, false), numbers(7, 9), "from offset 7");
        expectEqual(offsets(world, client, offset(10), 5, false), List.of(), "past the end");
        expectEqual(
                offsets(world, client, PollingStrategy.timestamp(middle), 10, false), numbers(5, 10), "from a time");
        expectEqual(offsets(world, client, PollingStrategy.first(), 3, false), numbers(0, 3), "first");
        expectEqual(offsets(world, client, PollingStrategy.last(), 3, false), numbers(7, 10), "last");
        expectEqual(offsets(world, client, next, 4, false), numbers(0, 4), "next, not committed");
        expectEqual(offsets(world, client, next, 4, true), numbers(0, 4), "next, committed");
        expectEqual(offsets(world, client, next, 10, true), numbers(4, 10), "next after a commit");
        expectEqual(offsets(world, client, next, 10, true), List.of(), "next at the end");
        Message message = world.poll(client, 0, offset(3), 1).messages().get(0);
        expectEqual(World.text(message), "first-3", "payload");
        expect(message.header().id().toBigInteger().signum() != 0, "the server gave the message an id");
    }

    /** The clock stands a millisecond apart from both halves. */
    private static void await(BigInteger timeUs) {
        while (System.currentTimeMillis() * 1000 <= timeUs.longValue()) Thread.onSpinWait();
    }

    private static PollingStrategy offset(long value) {
        return PollingStrategy.offset(BigInteger.valueOf(value));
    }

    private static List<Long> numbers(long first, long end) {
        return LongStream.range(first, end).boxed().toList();
    }

    private static List<Long> offsets(
            World world, IggyBaseClient client, PollingStrategy strategy, long count, boolean autoCommit) {
        return client
                .messages()
                .pollMessages(world.stream, TOPIC, Optional.of(0L), Consumer.of(1L), strategy, count, autoCommit)
                .messages()
                .stream()
                .map(message -> message.header().offset().longValue())
                .toList();
    }

    static void payloads(World world) {
        IggyBaseClient client = world.connect();
        world.createTopic(client, 1);
        // Over HTTP a request is at most 2 MB of base64.
        List<Integer> sizes = world.isHttp() ? List.of(1, MIB) : List.of(1, MIB, 8 * MIB);
        for (int size : sizes) {
            client.messages().sendMessages(world.stream, TOPIC, FIRST_PARTITION, List.of(message(patterned(size))));
        }
        for (int index = 0; index < sizes.size(); index++) {
            List<Message> found = world.poll(client, 0, offset(index), 1).messages();
            expectEqual(found.size(), 1, "messages of " + sizes.get(index) + " bytes");
            expect(
                    Arrays.equals(found.get(0).payload(), patterned(sizes.get(index))),
                    sizes.get(index) + " bytes are as sent");
        }
        List<String> many = IntStream.range(0, 1000).mapToObj(number -> "message " + number).toList();
        world.send(client, FIRST_PARTITION, many.toArray(String[]::new));
        List<Message> found = world.poll(client, 0, offset(sizes.size()), 1000).messages();
        expectEqual(found.stream().map(World::text).toList(), many, "a batch of 1000");
    }

    private static Message message(byte[] payload) {
        MessageHeader header = new MessageHeader(
                BigInteger.ZERO,
                MessageId.serverGenerated(),
                BigInteger.ZERO,
                BigInteger.ZERO,
                BigInteger.ZERO,
                0L,
                (long) payload.length,
                BigInteger.ZERO);
        return new Message(header, payload, Map.of());
    }

    /** Bytes that a shift or a cut would change: the period is no power of two. */
    private static byte[] patterned(int size) {
        byte[] payload = new byte[size];
        for (int index = 0; index < size; index++) payload[index] = (byte) (index % 251);
        return payload;
    }

    static void headers(World world) {
        IggyBaseClient client = world.connect();
        world.createTopic(client, 1);
        Map<HeaderKey, HeaderValue> sent = new HashMap<>();
        sent.put(HeaderKey.fromString("text"), HeaderValue.fromString("grün"));
        sent.put(HeaderKey.fromString("yes"), HeaderValue.fromBool(true));
        sent.put(HeaderKey.fromString("int8"), HeaderValue.fromInt8((byte) -8));
        sent.put(HeaderKey.fromString("int16"), HeaderValue.fromInt16((short) -1600));
        sent.put(HeaderKey.fromString("int32"), HeaderValue.fromInt32(-320_000));
        sent.put(HeaderKey.fromString("int64"), HeaderValue.fromInt64(Long.MIN_VALUE));
        sent.put(HeaderKey.fromString("uint8"), HeaderValue.fromUint8((short) 255));
        sent.put(HeaderKey.fromString("uint16"), HeaderValue.fromUint16(65_535));
        sent.put(HeaderKey.fromString("uint32"), HeaderValue.fromUint32(4_294_967_295L));
        sent.put(HeaderKey.fromString("float32"), HeaderValue.fromFloat32(1.5f));
        sent.put(HeaderKey.fromString("float64"), HeaderValue.fromFloat64(-2.25));
        sent.put(HeaderKey.fromString("raw"), HeaderValue.fromRaw(new byte[] {0, 1, -1}));
        sent.put(HeaderKey.fromString("uint128"), new HeaderValue(HeaderKind.Uint128, new byte[16]));
        sent.put(new HeaderKey(HeaderKind.Uint32, new byte[] {7, 0, 0, 0}), HeaderValue.fromString("a number as key"));
        List<Message> messages =
                List.of(Message.of("with headers").withUserHeaders(sent), Message.of("without"));
        client.messages().sendMessages(world.stream, TOPIC, FIRST_PARTITION, messages);
        List<Message> found = world.poll(client, 0, PollingStrategy.first(), 2).messages();
        expectEqual(found.get(0).userHeaders(), sent, "headers");
        expectEqual(found.get(1).userHeaders(), Map.of(), "headers of the second message");
    }
}
