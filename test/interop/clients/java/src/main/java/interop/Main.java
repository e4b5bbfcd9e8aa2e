package interop;

import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs scenarios with the official Java client against one server: one JSON line per scenario.
 *
 * <p>{@code --transport tcp|http --tcp HOST:PORT --websocket HOST:PORT --quic HOST:PORT --http HOST:PORT SCENARIO...}
 */
public final class Main {
    /** As in pom.xml; the client's jar does not say. */
    private static final String VERSION = "0.8.0";

    private interface Scenario {
        void run(World world) throws Exception;
    }

    private static final Map<String, Scenario> SCENARIOS = new LinkedHashMap<>();

    static {
        SCENARIOS.put("system", Administration::system);
        SCENARIOS.put("streams-and-topics", Administration::streamsAndTopics);
        SCENARIOS.put("partitions", Administration::partitions);
        SCENARIOS.put("tokens", Users::tokens);
        SCENARIOS.put("users", Users::users);
        SCENARIOS.put("permissions", Users::permissions);
        SCENARIOS.put("errors", Administration::errors);
        SCENARIOS.put("partitioning", Messages::partitioning);
        SCENARIOS.put("polling", Messages::polling);
        SCENARIOS.put("payloads", Messages::payloads);
        SCENARIOS.put("headers", Messages::headers);
        SCENARIOS.put("consumer-offsets", Groups::consumerOffsets);
        SCENARIOS.put("consumer-groups", Groups::consumerGroups);
        SCENARIOS.put("restart", Restart::restart);
    }

    private Main() {}

    public static void main(String[] arguments) {
        Map<String, String> options = new HashMap<>();
        int position = 0;
        while (position < arguments.length && arguments[position].startsWith("--")) {
            options.put(arguments[position].substring(2), arguments[position + 1]);
            position += 2;
        }
        String transport = options.get("transport");
        for (String name : List.of(arguments).subList(position, arguments.length)) {
            World world = new World(transport, options.get("tcp"), options.get("http"), name + "-java");
            String detail = run(name, world);
            System.out.printf(
                    "{\"client\":\"java\",\"version\":\"%s\",\"transport\":\"%s\",\"scenario\":\"%s\",\"ok\":%b,\"detail\":\"%s\"}%n",
                    VERSION, transport, name, detail.isEmpty(), escaped(detail));
        }
        // Threads of the client's pools would keep the process.
        System.exit(0);
    }

    /** @return why the scenario did not hold, empty when it did. */
    private static String run(String name, World world) {
        try {
            SCENARIOS.get(name).run(world);
            return "";
        } catch (World.NotAsExpected failure) {
            return failure.getMessage();
        } catch (Exception failure) {
            StackTraceElement place = Arrays.stream(failure.getStackTrace())
                    .filter(element -> element.getClassName().startsWith("interop."))
                    .findFirst()
                    .orElse(failure.getStackTrace()[0]);
            return failure + " at " + place;
        } finally {
            world.close();
        }
    }

    private static String escaped(String text) {
        return text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ");
    }
}
