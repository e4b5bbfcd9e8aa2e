package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

const group = "pair"

func consumerOffsets(w *world) {
	c := w.connect()
	w.createTopic(c, 1)
	must(w.send(c, iggcon.PartitionId(0), "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"), "send")
	_, err := c.CreateConsumerGroup(id(w.name), id(topic), group)
	must(err, "create group")
	must(c.JoinConsumerGroup(id(w.name), id(topic), id(group)), "join: only a member has the group's offsets")
	partition := uint32(0)
	for what, consumer := range map[string]iggcon.Consumer{
		"a number": iggcon.NewSingleConsumer(numeric(7)),
		"a name":   iggcon.NewSingleConsumer(id("archiver")),
		"a group":  iggcon.NewGroupConsumer(id(group)),
	} {
		must(c.StoreConsumerOffset(consumer, id(w.name), id(topic), 4, &partition), "store the offset of "+what)
		stored, err := c.GetConsumerOffset(consumer, id(w.name), id(topic), &partition)
		must(err, "offset of "+what)
		expectEqual([]uint64{stored.StoredOffset, stored.CurrentOffset}, []uint64{4, 9}, "offset of "+what)
		if consumer.Kind == iggcon.ConsumerKindSingle {
			polled, err := c.PollMessages(id(w.name), id(topic), consumer, iggcon.NextPollingStrategy(), 2, false, &partition)
			must(err, "poll of "+what)
			expectEqual(polled.Messages[0].Header.Offset, uint64(5), "next of "+what)
		}
		must(c.DeleteConsumerOffset(consumer, id(w.name), id(topic), &partition), "delete the offset of "+what)
		expectError(c.DeleteConsumerOffset(consumer, id(w.name), id(topic), &partition), "a second deletion", 3021)
	}
	expectError(
		c.StoreConsumerOffset(iggcon.NewSingleConsumer(numeric(7)), id(w.name), id(topic), 1000, &partition),
		"an offset past the end", 4100,
	)
}

// consumerGroups: two members share four partitions; each message comes to exactly one of them.
func consumerGroups(w *world) {
	c := w.connect()
	w.createTopic(c, 4)
	_, err := c.CreateConsumerGroup(id(w.name), id(topic), group)
	must(err, "create group")
	members := []iggcon.Client{w.connect(), w.connect()}
	shares := func(expected ...int) func() bool {
		return func() bool {
			details, err := c.GetConsumerGroup(id(w.name), id(topic), id(group))
			must(err, "group")
			found := []int{}
			for _, member := range details.Members {
				found = append(found, len(member.Partitions))
			}
			return slices.Equal(found, expected)
		}
	}
	must(members[0].JoinConsumerGroup(id(w.name), id(topic), id(group)), "join")
	eventually(shares(4), "the only member has all partitions")
	must(members[1].JoinConsumerGroup(id(w.name), id(topic), id(group)), "join")
	must(members[1].JoinConsumerGroup(id(w.name), id(topic), id(group)), "join again")
	eventually(shares(2, 2), "two members with two partitions each")
	for partition := range uint32(4) {
		for number := range 10 {
			must(w.send(c, iggcon.PartitionId(partition), fmt.Sprintf("%d/%d", partition, number)), "send")
		}
	}
	owners := map[string]int{}
	partitionsOf := []map[uint32]bool{{}, {}}
	eventually(func() bool {
		for number, member := range members {
			polled, err := member.PollMessages(id(w.name), id(topic), iggcon.NewGroupConsumer(id(group)), iggcon.NextPollingStrategy(), 3, true, nil)
			must(err, "poll of a member")
			for _, message := range polled.Messages {
				_, isRepeated := owners[string(message.Payload)]
				expect(!isRepeated, "message "+string(message.Payload)+" came twice")
				owners[string(message.Payload)] = number
				partitionsOf[number][polled.PartitionId] = true
			}
		}
		return len(owners) == 40
	}, "every message came to a member")
	for partition := range partitionsOf[0] {
		expect(!partitionsOf[1][partition], fmt.Sprintf("partition %d has two owners", partition))
	}
	expectEqual(len(partitionsOf[0])+len(partitionsOf[1]), 4, "partitions with an owner")
	must(members[0].LeaveConsumerGroup(id(w.name), id(topic), id(group)), "leave")
	eventually(shares(4), "the member that stays has all partitions")
	must(members[1].Close(), "close the connection of the last member")
	eventually(shares(), "a closed connection is no member")
	groups, err := c.GetConsumerGroups(id(w.name), id(topic))
	must(err, "groups")
	expectEqual(len(groups), 1, "listed groups")
	must(c.DeleteConsumerGroup(id(w.name), id(topic), id(group)), "delete group")
	expectError(c.JoinConsumerGroup(id(w.name), id(topic), id(group)), "joining a deleted group", 5000, 5003)
}

// restart: the client does not reconnect by itself, so a producer and a member connect again whenever a call fails.
func restart(w *world) {
	c := w.connect()
	w.createTopic(c, 2)
	_, err := c.CreateConsumerGroup(id(w.name), id(topic), group)
	must(err, "create group")
	acked := make(chan string, 200)
	stop := make(chan struct{})
	received := make(chan received, 1000)
	go member(w, stop, received)
	c = produce(w, c, 0, 50, acked)
	sent := make(chan iggcon.Client)
	go func() { sent <- produce(w, c, 50, 50, acked) }()
	ask("restart")
	produce(w, <-sent, 100, 50, acked)
	close(acked)

	wanted := map[string]bool{}
	for text := range acked {
		wanted[text] = true
	}
	places := map[place]string{}
	deadline := time.After(2 * patience)
	for len(wanted) > 0 {
		select {
		case one := <-received:
			_, isRepeated := places[one.place]
			expect(!isRepeated, fmt.Sprintf("offset %v was handed over twice", one.place))
			places[one.place] = one.text
			delete(wanted, one.text)
		case <-deadline:
			panic(fmt.Sprintf("%d acknowledged messages did not come", len(wanted)))
		}
	}
	close(stop)
	for partition := range uint32(2) {
		offsets := []uint64{}
		for at := range maps.Keys(places) {
			if at.partition == partition {
				offsets = append(offsets, at.offset)
			}
		}
		slices.Sort(offsets)
		expectEqual(offsets[len(offsets)-1], uint64(len(offsets)-1), fmt.Sprintf("last offset of partition %d", partition))
	}
}

type place struct {
	partition uint32
	offset    uint64
}

type received struct {
	place place
	text  string
}

// produce sends each message until it is acknowledged. It returns the client that worked last.
func produce(w *world, c iggcon.Client, first, count int, acked chan<- string) iggcon.Client {
	for number := first; number < first+count; number++ {
		text := fmt.Sprintf("message %d", number)
		for w.send(c, iggcon.PartitionId(uint32(number%2)), text) != nil {
			c = w.connectAgain(c)
		}
		acked <- text
	}
	return c
}

// member polls for the group and stores the offset after it has handed the messages over.
func member(w *world, stop <-chan struct{}, hand chan<- received) {
	c := w.joined(nil)
	next := map[uint32]uint64{}
	for {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		polled, err := c.PollMessages(id(w.name), id(topic), iggcon.NewGroupConsumer(id(group)), iggcon.NextPollingStrategy(), 20, false, nil)
		if err != nil {
			c = w.joined(c)
			continue
		}
		for _, message := range polled.Messages {
			// What was handed over but not stored before the server went comes again.
			if message.Header.Offset < next[polled.PartitionId] {
				continue
			}
			next[polled.PartitionId] = message.Header.Offset + 1
			hand <- received{place{polled.PartitionId, message.Header.Offset}, string(message.Payload)}
		}
		if stored := next[polled.PartitionId]; len(polled.Messages) > 0 {
			_ = c.StoreConsumerOffset(iggcon.NewGroupConsumer(id(group)), id(w.name), id(topic), stored-1, &polled.PartitionId)
		}
	}
}

func (w *world) joined(c iggcon.Client) iggcon.Client {
	for {
		c = w.connectAgain(c)
		if c.JoinConsumerGroup(id(w.name), id(topic), id(group)) == nil {
			return c
		}
	}
}

// connectAgain tries until the server is there.
func (w *world) connectAgain(old iggcon.Client) iggcon.Client {
	if old != nil {
		_ = old.Close()
	}
	for ; ; time.Sleep(100 * time.Millisecond) {
		c, err := client(w.address)
		if err != nil {
			continue
		}
		if _, err = c.LoginUser(username, password); err == nil {
			return c
		}
		_ = c.Close()
	}
}
