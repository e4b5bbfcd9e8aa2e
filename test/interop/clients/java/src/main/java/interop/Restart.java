package interop;

import static interop.World.eventually;
import static interop.World.expect;

import java.math.BigInteger;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.apache.iggy.client.blocking.IggyBaseClient;
import org.apache.iggy.message.Message;
import org.apache.iggy.message.Partitioning;
import org.apache.iggy.message.PolledMessages;
import org.apache.iggy.message.PollingStrategy;

/**
 * The server is killed and started again while a producer sends and a consumer reads. The blocking client does not
 * reconnect by itself, so both connect again whenever a call fails.
 */
final class Restart {
    private static final int PARTITIONS = 2;
    /** Longer than the client's own timeout of a request. */
    private static final long ANSWER_SECONDS = 30;
    /** The consumer may sit out a call that never returns, and begin anew. */
    private static final Duration CAUGHT_UP = Duration.ofSeconds(2 * ANSWER_SECONDS);

    private Restart() {}

    static void restart(World world) throws Exception {
        IggyBaseClient client = world.connect();
        world.createTopic(client, PARTITIONS);
        Set<String> acked = ConcurrentHashMap.newKeySet();
        Map<String, String> textOfPlace = new ConcurrentHashMap<>();
        AtomicBoolean isOver = new AtomicBoolean();
        Thread consumer = new Thread(() -> follow(world, textOfPlace, isOver));
        consumer.start();
        try {
            produce(world, 0, 50, acked);
            Thread producer = new Thread(() -> produce(world, 50, 100, acked));
            producer.start();
            World.ask("restart");
            producer.join();
            produce(world, 100, 150, acked);
            expect(acked.size() == 150, "150 messages are acknowledged, found " + acked.size());
            eventually(
                    "every acknowledged message came",
                    CAUGHT_UP,
                    () -> Set.copyOf(textOfPlace.values()).containsAll(acked));
        } finally {
            isOver.set(true);
            consumer.join();
        }
        for (int partition = 0; partition < PARTITIONS; partition++) {
            String prefix = partition + "/";
            long count = textOfPlace.keySet().stream().filter(place -> place.startsWith(prefix)).count();
            expect(textOfPlace.containsKey(prefix + (count - 1)), "offsets of partition " + partition + " are whole");
        }
    }

    private static void produce(World world, int first, int end, Set<String> acked) {
        IggyBaseClient client = connectAgain(world, null);
        for (int number = first; number < end; number++) {
            String text = "message " + number;
            while (!acked.contains(text)) {
                try {
                    IggyBaseClient connected = client;
                    Partitioning partition = Partitioning.partitionId((long) number % PARTITIONS);
                    answered(() -> {
                        world.send(connected, partition, text);
                        return null;
                    });
                    acked.add(text);
                } catch (RuntimeException serverIsAway) {
                    client = connectAgain(world, client);
                }
            }
        }
    }

    /** Reads on from its own offsets. An offset that says something else the second time is a fault. */
    private static void follow(World world, Map<String, String> textOfPlace, AtomicBoolean isOver) {
        IggyBaseClient client = connectAgain(world, null);
        long[] next = new long[PARTITIONS];
        while (!isOver.get()) {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                try {
                    PollingStrategy from = PollingStrategy.offset(BigInteger.valueOf(next[partition]));
                    IggyBaseClient connected = client;
                    int polled = partition;
                    PolledMessages answer = answered(() -> world.poll(connected, polled, from, 100));
                    for (Message message : answer.messages()) {
                        long offset = message.header().offset().longValue();
                        expect(offset == next[partition], "offset " + next[partition] + " follows, found " + offset);
                        textOfPlace.put(partition + "/" + offset, World.text(message));
                        next[partition]++;
                    }
                } catch (World.NotAsExpected fault) {
                    isOver.set(true);
                } catch (RuntimeException serverIsAway) {
                    client = connectAgain(world, client);
                }
            }
        }
    }

    private static IggyBaseClient connectAgain(World world, IggyBaseClient old) {
        // Nobody waits for it: it may be what never returns.
        if (old != null) daemon(() -> World.close(old));
        while (true) {
            try {
                return answered(world::connect);
            } catch (RuntimeException serverIsAway) {
                pause();
            }
        }
    }

    /** A call whose connection ends at the wrong moment may never return: that is a server that is away, too. */
    private static <T> T answered(Supplier<T> call) {
        CompletableFuture<T> answer = new CompletableFuture<>();
        daemon(() -> {
            try {
                answer.complete(call.get());
            } catch (RuntimeException failure) {
                answer.completeExceptionally(failure);
            }
        });
        return answer.orTimeout(ANSWER_SECONDS, TimeUnit.SECONDS).join();
    }

    private static void daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    private static void pause() {
        try {
            Thread.sleep(100);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
