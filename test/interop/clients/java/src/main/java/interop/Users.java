package interop;

import static interop.World.doing;
import static interop.World.expect;
import static interop.World.expectEqual;
import static interop.World.expectError;

import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.iggy.client.blocking.IggyBaseClient;
import org.apache.iggy.identifier.UserId;
import org.apache.iggy.message.Partitioning;
import org.apache.iggy.message.PollingStrategy;
import org.apache.iggy.personalaccesstoken.PersonalAccessTokenInfo;
import org.apache.iggy.user.GlobalPermissions;
import org.apache.iggy.user.Permissions;
import org.apache.iggy.user.StreamPermissions;
import org.apache.iggy.user.UserInfo;
import org.apache.iggy.user.UserInfoDetails;
import org.apache.iggy.user.UserStatus;

/** Scenarios of users, their rights and their tokens. */
final class Users {
    private Users() {}

    static void tokens(World world) throws Exception {
        IggyBaseClient client = world.connect();
        String token = client.personalAccessTokens()
                .createPersonalAccessToken("token-java", BigInteger.ZERO)
                .token();
        List<PersonalAccessTokenInfo> listed = client.personalAccessTokens().getPersonalAccessTokens();
        expectEqual(listed.stream().map(PersonalAccessTokenInfo::name).toList(), List.of("token-java"), "tokens");
        expectError(
                "a second token of that name",
                () -> client.personalAccessTokens().createPersonalAccessToken("token-java", BigInteger.ZERO),
                51);
        IggyBaseClient other = world.dial();
        other.personalAccessTokens().loginWithPersonalAccessToken(token);
        other.streams().createStream(world.name);
        client.personalAccessTokens().deletePersonalAccessToken("token-java");
        IggyBaseClient late = world.dial();
        expectError(
                "login with a deleted token",
                () -> late.personalAccessTokens().loginWithPersonalAccessToken(token),
                20,
                53);
    }

    static void users(World world) throws Exception {
        IggyBaseClient client = world.connect();
        UserId name = UserId.of("user-java");
        UserInfoDetails made =
                client.users().createUser("user-java", "secret-1", UserStatus.Active, Optional.empty());
        expectEqual(made.username(), "user-java", "new user");
        List<String> names = client.users().getUsers().stream().map(UserInfo::username).toList();
        expect(names.contains("user-java"), "the user is listed");
        expectError(
                "a second user of that name",
                () -> client.users().createUser("user-java", "secret-1", UserStatus.Active, Optional.empty()),
                46);
        world.connect("user-java", "secret-1");
        client.users().changePassword(name, "secret-1", "secret-2");
        expectError("the old password", () -> world.connect("user-java", "secret-1"), 42);
        world.connect("user-java", "secret-2");
        UserId id = UserId.of(made.id());
        client.users().updateUser(id, Optional.of("user-java-renamed"), Optional.empty());
        expectEqual(client.users().getUser(id).orElseThrow().username(), "user-java-renamed", "renamed user");
        client.users().deleteUser(id);
        expectEqual(client.users().getUser(id), Optional.empty(), "a deleted user");
        expectError("login of a deleted user", () -> world.connect("user-java-renamed", "secret-2"), 42);
    }

    static void permissions(World world) throws Exception {
        IggyBaseClient client = world.connect();
        world.createTopic(client, 1);
        client.users().createUser("reader-java", "secret-1", UserStatus.Active, Optional.empty());
        IggyBaseClient without = world.connect("reader-java", "secret-1");
        Partitioning partition = Partitioning.partitionId(0L);
        expectError("creation without rights", () -> without.streams().createStream(world.name + "-new"), 41);
        expectError("a send without rights", doing(() -> world.send(without, partition, "x")), 41);
        long stream = client.streams().getStream(world.stream).orElseThrow().id();
        GlobalPermissions nothing =
                new GlobalPermissions(false, false, false, false, false, false, false, false, false, false);
        StreamPermissions read = new StreamPermissions(false, true, false, false, true, false, Map.of());
        client.users()
                .updatePermissions(
                        UserId.of("reader-java"), Optional.of(new Permissions(nothing, Map.of(stream, read))));
        world.send(client, partition, "for the reader");
        IggyBaseClient reader = world.connect("reader-java", "secret-1");
        expectEqual(
                world.poll(reader, 0, PollingStrategy.first(), 10).messages().size(), 1, "messages the reader reads");
        expectError("a send with the right to read", doing(() -> world.send(reader, partition, "x")), 41);
        expectError(
                "a deletion with the right to read",
                doing(() -> reader.streams().deleteStream(world.stream)),
                41);
    }
}
