package interop;

import java.io.Closeable;
import java.io.IOException;
import java.math.BigInteger;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.apache.iggy.client.blocking.IggyBaseClient;
import org.apache.iggy.client.blocking.http.IggyHttpClient;
import org.apache.iggy.client.blocking.tcp.IggyTcpClient;
import org.apache.iggy.consumergroup.Consumer;
import org.apache.iggy.exception.IggyServerException;
import org.apache.iggy.identifier.StreamId;
import org.apache.iggy.identifier.TopicId;
import org.apache.iggy.message.Message;
import org.apache.iggy.message.Partitioning;
import org.apache.iggy.message.PollingStrategy;
import org.apache.iggy.message.PolledMessages;
import org.apache.iggy.topic.CompressionAlgorithm;
import org.apache.iggy.topic.TopicDetails;

/** The server under test as one transport reaches it, and what a scenario opened on it. */
final class World {
    static final String USERNAME = "iggy";
    static final String PASSWORD = "iggy";
    static final TopicId TOPIC = TopicId.of("events");
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    /** The server did something else than the scenario says. */
    static final class NotAsExpected extends RuntimeException {
        NotAsExpected(String what) {
            super(what);
        }
    }

    final String transport;
    /** Name of the scenario's own stream. */
    final String name;
    final StreamId stream;
    private final String tcp;
    private final String http;
    private final List<IggyBaseClient> opened = new ArrayList<>();

    World(String transport, String tcp, String http, String name) {
        this.transport = transport;
        this.tcp = tcp;
        this.http = http;
        this.name = name;
        this.stream = StreamId.of(name);
    }

    boolean isHttp() {
        return transport.equals("http");
    }

    /** A client that has not logged in. */
    IggyBaseClient dial() {
        IggyBaseClient client = isHttp() ? new IggyHttpClient("http://" + http) : dialTcp();
        synchronized (opened) {
            opened.add(client);
        }
        return client;
    }

    private IggyTcpClient dialTcp() {
        String[] parts = tcp.split(":");
        IggyTcpClient client = IggyTcpClient.builder()
                .host(parts[0])
                .port(Integer.valueOf(parts[1]))
                .requestTimeout(Duration.ofSeconds(20))
                // A scenario is one session; a connection the pool adds later is not logged in at once.
                .connectionPoolSize(1)
                .build();
        client.connect();
        return client;
    }

    IggyBaseClient connect() {
        return connect(USERNAME, PASSWORD);
    }

    IggyBaseClient connect(String username, String password) {
        IggyBaseClient client = dial();
        client.users().login(username, password);
        return client;
    }

    static void close(IggyBaseClient client) {
        try {
            ((Closeable) client).close();
        } catch (IOException | RuntimeException alreadyGone) {
            // Nothing is left to close.
        }
    }

    void close() {
        synchronized (opened) {
            opened.forEach(World::close);
        }
    }

    /** The scenario's stream with one topic. */
    void createTopic(IggyBaseClient client, long partitions) {
        client.streams().createStream(name);
        createTopic(client, stream, "events", partitions);
    }

    static TopicDetails createTopic(IggyBaseClient client, StreamId stream, String name, long partitions) {
        return client.topics()
                .createTopic(
                        stream,
                        partitions,
                        CompressionAlgorithm.None,
                        BigInteger.ZERO,
                        BigInteger.ZERO,
                        Optional.empty(),
                        name);
    }

    void send(IggyBaseClient client, Partitioning partitioning, String... texts) {
        client.messages()
                .sendMessages(
                        stream,
                        TOPIC,
                        partitioning,
                        Arrays.stream(texts).map(Message::of).toList());
    }

    PolledMessages poll(IggyBaseClient client, long partition, PollingStrategy strategy, long count) {
        return client.messages()
                .pollMessages(stream, TOPIC, Optional.of(partition), Consumer.of(1L), strategy, count, false);
    }

    static String text(Message message) {
        return new String(message.payload(), java.nio.charset.StandardCharsets.UTF_8);
    }

    static void expect(boolean condition, String what) {
        if (!condition) throw new NotAsExpected(what);
    }

    static void expectEqual(Object found, Object expected, String what) {
        expect(Objects.equals(found, expected), what + ": expected " + expected + ", found " + found);
    }

    /** The call fails with the error of one of these numbers. */
    static void expectError(String what, Callable<?> call, Integer... codes) throws Exception {
        try {
            call.call();
        } catch (IggyServerException error) {
            // Over HTTP the client reads the number as a text beside the code it does not know.
            int code = error.getErrorId().map(Integer::valueOf).orElse(error.getRawErrorCode());
            expect(
                    Arrays.asList(codes).contains(code),
                    what + ": expected error " + Arrays.toString(codes) + ", found " + code + " " + error.getMessage());
            return;
        }
        throw new NotAsExpected(what + ": expected error " + Arrays.toString(codes) + ", it succeeded");
    }

    /** A call without a result, for {@link #expectError}. */
    static Callable<Void> doing(Runnable call) {
        return () -> {
            call.run();
            return null;
        };
    }

    /** Looks every 20 ms until the condition holds: the client has no event for it. */
    static void eventually(String what, Callable<Boolean> condition) throws Exception {
        eventually(what, PATIENCE, condition);
    }

    /** The same with a patience of its own. */
    static void eventually(String what, Duration patience, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + patience.toNanos();
        while (!condition.call()) {
            expect(System.nanoTime() < deadline, what + ": not within " + patience.toSeconds() + " s");
            Thread.sleep(20);
        }
    }

    /** Asks the test for what only it can do, and waits until it is done. */
    static void ask(String question) throws IOException {
        System.out.println("{\"ask\":\"" + question + "\"}");
        while (System.in.read() != '\n') {
            // The answer is one line; what it says is that it is done.
        }
    }
}
