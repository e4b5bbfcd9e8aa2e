package interop;

import static interop.World.TOPIC;
import static interop.World.doing;
import static interop.World.eventually;
import static interop.World.expect;
import static interop.World.expectEqual;
import static interop.World.expectError;

import java.math.BigInteger;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.iggy.client.blocking.IggyBaseClient;
import org.apache.iggy.consumergroup.Consumer;
import org.apache.iggy.consumeroffset.ConsumerOffsetInfo;
import org.apache.iggy.identifier.ConsumerId;
import org.apache.iggy.message.Message;
import org.apache.iggy.message.Partitioning;
import org.apache.iggy.message.PolledMessages;
import org.apache.iggy.message.PollingStrategy;

/** Scenarios of consumer offsets and of groups. */
final class Groups {
    static final ConsumerId GROUP = ConsumerId.of("pair");

    private Groups() {}

    /** The client stores and reads offsets, but has no call to delete them. */
    static void consumerOffsets(World world) throws Exception {
        IggyBaseClient client = world.connect();
        world.createTopic(client, 1);
        world.send(client, Partitioning.partitionId(0L), "0", "1", "2", "3", "4", "5", "6", "7", "8", "9");
        Optional<Long> partition = Optional.of(0L);
        for (Consumer consumer : List.of(Consumer.of(7L), Consumer.of(ConsumerId.of("archiver")))) {
            client.consumerOffsets()
                    .storeConsumerOffset(world.stream, TOPIC, partition, consumer, BigInteger.valueOf(4));
            ConsumerOffsetInfo stored = client.consumerOffsets()
                    .getConsumerOffset(world.stream, TOPIC, partition, consumer)
                    .orElseThrow();
            expectEqual(
                    List.of(stored.storedOffset(), stored.currentOffset()),
                    List.of(BigInteger.valueOf(4), BigInteger.valueOf(9)),
                    "offset of " + consumer);
            PolledMessages next = client.messages()
                    .pollMessages(world.stream, TOPIC, partition, consumer, PollingStrategy.next(), 2L, false);
            expectEqual(next.messages().get(0).header().offset(), BigInteger.valueOf(5), "next of " + consumer);
        }
        expectError(
                "an offset past the end",
                doing(() -> client.consumerOffsets()
                        .storeConsumerOffset(world.stream, TOPIC, partition, Consumer.of(7L), BigInteger.valueOf(1000))),
                4100);
    }

    /** Two members share four partitions; each message comes to exactly one of them. */
    static void consumerGroups(World world) throws Exception {
        IggyBaseClient client = world.connect();
        world.createTopic(client, 4);
        client.consumerGroups().createConsumerGroup(world.stream, TOPIC, "pair");
        List<IggyBaseClient> members = List.of(world.connect(), world.connect());
        join(world, members.get(0));
        eventually("the only member has all partitions", () -> shares(world, client).equals(List.of(4)));
        join(world, members.get(1));
        eventually("two members share evenly", () -> shares(world, client).equals(List.of(2, 2)));
        for (long partition = 0; partition < 4; partition++) {
            for (int number = 0; number < 10; number++) {
                world.send(client, Partitioning.partitionId(partition), partition + "/" + number);
            }
        }
        Map<String, Integer> owners = new HashMap<>();
        List<Set<Long>> partitions = List.of(new HashSet<>(), new HashSet<>());
        eventually("every message came to a member", () -> {
            for (int number = 0; number < 2; number++) pollAs(world, members.get(number), number, owners, partitions);
            return owners.size() == 40;
        });
        expectEqual(partitions.stream().map(Set::size).toList(), List.of(2, 2), "partitions of each member");
        expect(partitions.get(0).stream().noneMatch(partitions.get(1)::contains), "no partition has two owners");
        client.consumerGroups().getConsumerGroups(world.stream, TOPIC);
        members.get(0).consumerGroups().leaveConsumerGroup(world.stream, TOPIC, GROUP);
        eventually("the member that stays has all", () -> shares(world, client).equals(List.of(4)));
        World.close(members.get(1));
        eventually("a closed connection is no member", () -> shares(world, client).isEmpty());
        client.consumerGroups().deleteConsumerGroup(world.stream, TOPIC, GROUP);
        expectEqual(
                client.consumerGroups().getConsumerGroup(world.stream, TOPIC, GROUP),
                Optional.empty(),
                "a deleted group");
        expectError("joining a deleted group", doing(() -> join(world, client)), 5000, 5003);
    }

    static void join(World world, IggyBaseClient client) {
        client.consumerGroups().joinConsumerGroup(world.stream, TOPIC, GROUP);
    }

    /** How many partitions each member has. */
    private static List<Integer> shares(World world, IggyBaseClient client) {
        return client.consumerGroups().getConsumerGroup(world.stream, TOPIC, GROUP).orElseThrow().members().stream()
                .map(member -> member.partitions().size())
                .toList();
    }

    private static void pollAs(
            World world, IggyBaseClient member, int number, Map<String, Integer> owners, List<Set<Long>> partitions) {
        PolledMessages polled = member.messages()
                .pollMessages(
                        world.stream,
                        TOPIC,
                        Optional.empty(),
                        Consumer.group(GROUP),
                        PollingStrategy.next(),
                        3L,
                        true);
        for (Message message : polled.messages()) {
            expect(owners.put(World.text(message), number) == null, World.text(message) + " came twice");
            partitions.get(number).add(polled.partitionId());
        }
    }
}
