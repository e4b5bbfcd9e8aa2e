package interop;

import static interop.World.TOPIC;
import static interop.World.doing;
import static interop.World.expect;
import static interop.World.expectEqual;
import static interop.World.expectError;

import java.math.BigInteger;
import java.util.List;
import java.util.Optional;
import org.apache.iggy.client.blocking.IggyBaseClient;
import org.apache.iggy.consumergroup.Consumer;
import org.apache.iggy.identifier.ConsumerId;
import org.apache.iggy.identifier.StreamId;
import org.apache.iggy.identifier.TopicId;
import org.apache.iggy.message.Message;
import org.apache.iggy.message.Partitioning;
import org.apache.iggy.message.PollingStrategy;
import org.apache.iggy.partition.Partition;
import org.apache.iggy.stream.StreamBase;
import org.apache.iggy.stream.StreamDetails;
import org.apache.iggy.system.Stats;
import org.apache.iggy.topic.CompressionAlgorithm;
import org.apache.iggy.topic.TopicDetails;

/** Scenarios of the server, of streams, topics and partitions, and of errors. */
final class Administration {
    private Administration() {}

    static void system(World world) {
        IggyBaseClient client = world.connect();
        client.system().ping();
        Stats stats = client.system().getStats();
        expect(stats.processId() > 0, "the server has a process id");
        expect(!stats.iggyServerVersion().isEmpty(), "the server has a version");
        if (world.isHttp()) return;
        long own = client.system().getMe().clientId();
        expectEqual(client.system().getClient(own).transport().toUpperCase(), "TCP", "transport of the client");
        expect(client.system().getClients().stream().anyMatch(one -> one.clientId() == own), "the client is listed");
    }

    static void streamsAndTopics(World world) {
        IggyBaseClient client = world.connect();
        StreamDetails stream = client.streams().createStream(world.name);
        StreamId id = StreamId.of(stream.id());
        TopicDetails topic = World.createTopic(client, world.stream, "events", 3);
        expectEqual(topic.partitionsCount(), 3L, "partitions of a new topic");
        StreamDetails found = client.streams().getStream(id).orElseThrow();
        expectEqual(List.of(found.name(), found.topicsCount()), List.of(world.name, 1L), "stream");
        List<String> names = client.streams().getStreams().stream().map(StreamBase::name).toList();
        expect(names.contains(world.name), "the stream is listed");
        expectEqual(client.topics().getTopics(world.stream).size(), 1, "listed topics");
        client.streams().updateStream(world.stream, world.name + "-renamed");
        TopicId topicId = TopicId.of(topic.id());
        client.topics()
                .updateTopic(
                        id,
                        TOPIC,
                        CompressionAlgorithm.None,
                        BigInteger.ZERO,
                        BigInteger.ZERO,
                        Optional.empty(),
                        "readings");
        expectEqual(client.topics().getTopic(id, topicId).orElseThrow().name(), "readings", "renamed topic");
        client.topics().deleteTopic(id, topicId);
        expectEqual(client.topics().getTopic(id, topicId), Optional.empty(), "a deleted topic");
        client.streams().deleteStream(id);
        expectEqual(client.streams().getStream(id), Optional.empty(), "a deleted stream");
    }

    static void partitions(World world) {
        IggyBaseClient client = world.connect();
        world.createTopic(client, 1);
        client.partitions().createPartitions(world.stream, TOPIC, 3L);
        TopicDetails topic = client.topics().getTopic(world.stream, TOPIC).orElseThrow();
        List<Long> numbers = topic.partitions().stream().map(Partition::id).toList();
        expectEqual(numbers, List.of(0L, 1L, 2L, 3L), "partitions");
        world.send(client, Partitioning.partitionId(3L), "into the new one");
        client.partitions().deletePartitions(world.stream, TOPIC, 2L);
        topic = client.topics().getTopic(world.stream, TOPIC).orElseThrow();
        expectEqual(topic.partitionsCount(), 2L, "partitions left");
    }

    static void errors(World world) throws Exception {
        expectError("a wrong password", () -> world.dial().users().login(World.USERNAME, "wrong"), 42);
        IggyBaseClient client = world.connect();
        world.createTopic(client, 1);
        StreamId noStream = StreamId.of("no-such-stream");
        TopicId noTopic = TopicId.of("no-such-topic");
        ConsumerId noGroup = ConsumerId.of("no-such-group");
        expectError("a second stream of that name", () -> client.streams().createStream(world.name), 1012);
        expectError(
                "a second topic of that name", () -> World.createTopic(client, world.stream, "events", 1), 2013);
        expectError("a topic in a missing stream", () -> World.createTopic(client, noStream, "events", 1), 1009);
        expectError(
                "deletion of a missing stream", doing(() -> client.streams().deleteStream(noStream)), 1009);
        expectError(
                "deletion of a missing topic",
                doing(() -> client.topics().deleteTopic(world.stream, noTopic)),
                2010);
        expectError("a poll of a missing partition", () -> world.poll(client, 7, PollingStrategy.first(), 1), 3007);
        List<Message> messages = List.of(Message.of("x"));
        expectError(
                "a send to a missing topic",
                doing(() -> client.messages().sendMessages(world.stream, noTopic, Partitioning.balanced(), messages)),
                2010,
                20);
        client.consumerGroups().createConsumerGroup(world.stream, TOPIC, "group");
        expectError(
                "a second group of that name",
                () -> client.consumerGroups().createConsumerGroup(world.stream, TOPIC, "group"),
                5004);
        expectError(
                "deletion of a missing group",
                doing(() -> client.consumerGroups().deleteConsumerGroup(world.stream, TOPIC, noGroup)),
                5000,
                5003);
        expectEqual(
                client.consumerOffsets().getConsumerOffset(world.stream, TOPIC, Optional.of(0L), Consumer.of(77L)),
                Optional.empty(),
                "an offset never stored");
    }
}
