package main

import (
	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

func system(w *world) {
	c := w.connect()
	must(c.Ping(), "ping")
	stats, err := c.GetStats()
	must(err, "stats")
	expect(stats.ProcessId > 0, "the server has a process id")
	clients, err := c.GetClients()
	must(err, "clients")
	expect(len(clients) >= 1, "the client is listed")
	own, err := c.GetClient(clients[0].ID)
	must(err, "client")
	expectEqual(own.ID, clients[0].ID, "client by its id")
	cluster, err := c.GetClusterMetadata()
	must(err, "cluster metadata")
	expectEqual(len(cluster.Nodes), 1, "nodes of the cluster")
}

func streamsAndTopics(w *world) {
	c := w.connect()
	stream, err := c.CreateStream(w.name)
	must(err, "create stream")
	made, err := createTopic(c, id(w.name), topic, 3)
	must(err, "create topic")
	expectEqual(made.PartitionsCount, uint32(3), "partitions of a new topic")
	found, err := c.GetStream(numeric(stream.Id))
	must(err, "stream by its id")
	expectEqual([]any{found.Name, found.TopicsCount}, []any{w.name, uint32(1)}, "stream")
	streams, err := c.GetStreams()
	must(err, "streams")
	isListed := false
	for _, listed := range streams {
		isListed = isListed || listed.Name == w.name
	}
	expect(isListed, "the stream is listed")
	topics, err := c.GetTopics(id(w.name))
	must(err, "topics")
	expectEqual(len(topics), 1, "listed topics")
	must(c.UpdateStream(id(w.name), w.name+"-renamed"), "rename the stream")
	must(c.UpdateTopic(numeric(stream.Id), id(topic), "readings", iggcon.CompressionAlgorithmNone, iggcon.IggyExpiryNeverExpire, 0, nil), "rename the topic")
	renamed, err := c.GetTopic(numeric(stream.Id), numeric(made.Id))
	must(err, "topic by its id")
	expectEqual(renamed.Name, "readings", "renamed topic")
	must(c.DeleteTopic(numeric(stream.Id), numeric(made.Id)), "delete topic")
	_, err = c.GetTopic(numeric(stream.Id), numeric(made.Id))
	expectError(err, "a deleted topic", 2010)
	must(c.DeleteStream(numeric(stream.Id)), "delete stream")
	_, err = c.GetStream(id(w.name + "-renamed"))
	expectError(err, "a deleted stream", 1009)
}

func partitions(w *world) {
	c := w.connect()
	w.createTopic(c, 1)
	must(c.CreatePartitions(id(w.name), id(topic), 3), "create partitions")
	found, err := c.GetTopic(id(w.name), id(topic))
	must(err, "topic")
	numbers := []uint32{}
	for _, partition := range found.Partitions {
		numbers = append(numbers, partition.Id)
	}
	expectEqual(numbers, []uint32{0, 1, 2, 3}, "partitions")
	must(w.send(c, iggcon.PartitionId(3), "into the new one"), "send")
	must(c.DeletePartitions(id(w.name), id(topic), 2), "delete partitions")
	found, err = c.GetTopic(id(w.name), id(topic))
	must(err, "topic")
	expectEqual(found.PartitionsCount, uint32(2), "partitions left")
}

func tokens(w *world) {
	c := w.connect()
	made, err := c.CreatePersonalAccessToken("token-go", 0)
	must(err, "create token")
	listed, err := c.GetPersonalAccessTokens()
	must(err, "tokens")
	expectEqual([]any{len(listed), listed[0].Name}, []any{1, "token-go"}, "listed tokens")
	_, err = c.CreatePersonalAccessToken("token-go", 0)
	expectError(err, "a second token of that name", 51)
	other, err := w.dial()
	must(err, "connect")
	_, err = other.LoginWithPersonalAccessToken(made.Token)
	must(err, "login with the token")
	_, err = other.CreateStream(w.name)
	must(err, "create a stream by the token's rights")
	must(c.DeletePersonalAccessToken("token-go"), "delete token")
	late, err := w.dial()
	must(err, "connect")
	_, err = late.LoginWithPersonalAccessToken(made.Token)
	expectError(err, "login with a deleted token", 20)
}

func users(w *world) {
	c := w.connect()
	made, err := c.CreateUser("user-go", "secret-1", iggcon.Active, nil)
	must(err, "create user")
	expectEqual(made.Username, "user-go", "new user")
	listed, err := c.GetUsers()
	must(err, "users")
	expectEqual(len(listed), 2, "listed users")
	_, err = c.CreateUser("user-go", "secret-1", iggcon.Active, nil)
	expectError(err, "a second user of that name", 46)
	must(w.connectAs("user-go", "secret-1").Ping(), "ping of the user")
	must(c.ChangePassword(id("user-go"), "secret-1", "secret-2"), "change the password")
	other, err := w.dial()
	must(err, "connect")
	_, err = other.LoginUser("user-go", "secret-1")
	expectError(err, "the old password", 42)
	w.connectAs("user-go", "secret-2")
	name := "user-go-renamed"
	must(c.UpdateUser(numeric(made.Id), &name, nil), "rename the user")
	found, err := c.GetUser(numeric(made.Id))
	must(err, "user by its id")
	expectEqual(found.Username, name, "renamed user")
	must(c.DeleteUser(numeric(made.Id)), "delete user")
	_, err = other.LoginUser(name, "secret-2")
	expectError(err, "login of a deleted user", 42)
}

func permissions(w *world) {
	c := w.connect()
	w.createTopic(c, 1)
	_, err := c.CreateUser("reader-go", "secret-1", iggcon.Active, nil)
	must(err, "create user")
	own := w.connectAs("reader-go", "secret-1")
	_, err = own.CreateStream(w.name + "-new")
	expectError(err, "creation without rights", 41)
	expectError(w.send(own, iggcon.PartitionId(0), "x"), "a send without rights", 41)
	stream, err := c.GetStream(id(w.name))
	must(err, "stream")
	rights := iggcon.StreamPermissions{ReadStream: true, PollMessages: true}
	must(c.UpdatePermissions(id("reader-go"), &iggcon.Permissions{
		Streams: map[int]*iggcon.StreamPermissions{int(stream.Id): &rights},
	}), "grant the right to read")
	must(w.send(c, iggcon.PartitionId(0), "for the reader"), "send")
	own = w.connectAs("reader-go", "secret-1")
	expectEqual(len(w.poll(own, 0, iggcon.FirstPollingStrategy(), 10)), 1, "messages the reader reads")
	expectError(w.send(own, iggcon.PartitionId(0), "x"), "a send with the right to read", 41)
	expectError(own.DeleteStream(id(w.name)), "a deletion with the right to read", 41)
}

func errorCodes(w *world) {
	fresh, err := w.dial()
	must(err, "connect")
	_, err = fresh.GetStreams()
	expectError(err, "a call before the login", 40)
	_, err = fresh.LoginUser(username, "wrong")
	expectError(err, "a wrong password", 42)
	c := w.connect()
	w.createTopic(c, 1)
	_, err = c.CreateStream(w.name)
	expectError(err, "a second stream of that name", 1012)
	_, err = createTopic(c, id(w.name), topic, 1)
	expectError(err, "a second topic of that name", 2013)
	_, err = createTopic(c, id("no-such-stream"), topic, 1)
	expectError(err, "a topic in a missing stream", 1009)
	expectError(c.DeleteStream(id("no-such-stream")), "deletion of a missing stream", 1009)
	expectError(c.DeleteTopic(id(w.name), id("no-such-topic")), "deletion of a missing topic", 2010)
	missing := uint32(7)
	_, err = c.PollMessages(id(w.name), id(topic), iggcon.DefaultConsumer(), iggcon.FirstPollingStrategy(), 1, false, &missing)
	expectError(err, "a poll of a missing partition", 3007)
	expectError(c.SendMessages(id(w.name), id("no-such-topic"), iggcon.None(), []iggcon.IggyMessage{message([]byte("x"))}), "a send to a missing topic", 2010, 20)
	_, err = c.CreateConsumerGroup(id(w.name), id(topic), "group")
	must(err, "create group")
	_, err = c.CreateConsumerGroup(id(w.name), id(topic), "group")
	expectError(err, "a second group of that name", 5004)
	expectError(c.DeleteConsumerGroup(id(w.name), id(topic), id("no-such-group")), "deletion of a missing group", 5000, 5003)
	expectError(c.LeaveConsumerGroup(id(w.name), id(topic), id("group")), "leaving a group not joined", 5006)
}
