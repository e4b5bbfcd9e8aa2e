package main

import (
	"bytes"
	"fmt"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

const mib = 1024 * 1024

// Where each key lands on a topic of four partitions: xxHash32 of the key, modulo four.
var partitionOfKey = map[string]int{"key-0": 3, "key-1": 1, "key-2": 0, "key-4": 2, "cust-456": 0}

func partitioning(w *world) {
	c := w.connect()
	w.createTopic(c, 4)
	texts := func(partition int) []string {
		found := []string{}
		for _, polled := range w.poll(c, uint32(partition), iggcon.FirstPollingStrategy(), 100) {
			found = append(found, string(polled.Payload))
		}
		return found
	}
	for number := range 8 {
		must(w.send(c, iggcon.None(), fmt.Sprintf("balanced-%d", number)), "balanced send")
	}
	for partition := range 4 {
		expectEqual(len(texts(partition)), 2, fmt.Sprintf("balanced messages of partition %d", partition))
	}
	must(w.send(c, iggcon.PartitionId(2), "chosen"), "send to a chosen partition")
	expectEqual(texts(2)[2], "chosen", "message of a chosen partition")
	for key, partition := range partitionOfKey {
		by, err := iggcon.EntityIdString(key)
		must(err, "key")
		must(w.send(c, by, key), "send by key")
		found := texts(partition)
		expectEqual(found[len(found)-1], key, "message of key "+key)
	}
}

func polling(w *world) {
	c := w.connect()
	w.createTopic(c, 1)
	must(w.send(c, iggcon.PartitionId(0), "first-0", "first-1", "first-2", "first-3", "first-4"), "send")
	middle := uint64(time.Now().UnixMicro())
	must(w.send(c, iggcon.PartitionId(0), "second-0", "second-1", "second-2", "second-3", "second-4"), "send")
	partition := uint32(0)
	offsets := func(strategy iggcon.PollingStrategy, count uint32, autoCommit bool) []uint64 {
		polled, err := c.PollMessages(id(w.name), id(topic), iggcon.NewSingleConsumer(numeric(1)), strategy, count, autoCommit, &partition)
		must(err, "poll")
		found := []uint64{}
		for _, message := range polled.Messages {
			found = append(found, message.Header.Offset)
		}
		return found
	}
	expectEqual(offsets(iggcon.OffsetPollingStrategy(0), 10, false), []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "from offset 0")
	expectEqual(offsets(iggcon.OffsetPollingStrategy(7), 2, false), []uint64{7, 8}, "from offset 7")
	expectEqual(offsets(iggcon.OffsetPollingStrategy(10), 5, false), []uint64{}, "past the end")
	expectEqual(offsets(iggcon.TimestampPollingStrategy(middle), 10, false), []uint64{5, 6, 7, 8, 9}, "from a time")
	expectEqual(offsets(iggcon.FirstPollingStrategy(), 3, false), []uint64{0, 1, 2}, "first")
	expectEqual(offsets(iggcon.LastPollingStrategy(), 3, false), []uint64{7, 8, 9}, "last")
	expectEqual(offsets(iggcon.NextPollingStrategy(), 4, false), []uint64{0, 1, 2, 3}, "next, not committed")
	expectEqual(offsets(iggcon.NextPollingStrategy(), 4, true), []uint64{0, 1, 2, 3}, "next, committed")
	expectEqual(offsets(iggcon.NextPollingStrategy(), 10, true), []uint64{4, 5, 6, 7, 8, 9}, "next after a commit")
	expectEqual(offsets(iggcon.NextPollingStrategy(), 10, true), []uint64{}, "next at the end")
	found := w.poll(c, 0, iggcon.OffsetPollingStrategy(3), 1)[0]
	expectEqual(string(found.Payload), "first-3", "payload")
	expect(found.Header.Id != iggcon.MessageID{}, "the server gave the message an id")
	expect(found.Header.Checksum != 0, "the message has a checksum")
}

func payloads(w *world) {
	c := w.connect()
	w.createTopic(c, 1)
	for offset, size := range []int{1, mib, 8 * mib} {
		payload := patterned(size)
		must(c.SendMessages(id(w.name), id(topic), iggcon.PartitionId(0), []iggcon.IggyMessage{message(payload)}), "send")
		found := w.poll(c, 0, iggcon.OffsetPollingStrategy(uint64(offset)), 1)
		expectEqual(len(found), 1, fmt.Sprintf("messages of %d bytes", size))
		expect(bytes.Equal(found[0].Payload, payload), fmt.Sprintf("%d bytes are as sent", size))
	}
	many := make([]string, 1000)
	for number := range many {
		many[number] = fmt.Sprintf("message %d", number)
	}
	must(w.send(c, iggcon.PartitionId(0), many...), "a batch of 1000")
	found := w.poll(c, 0, iggcon.OffsetPollingStrategy(3), 1000)
	expectEqual(len(found), 1000, "a batch of 1000")
	for number, polled := range found {
		expectEqual(string(polled.Payload), many[number], "message of the batch")
	}
}

// patterned makes bytes that a shift or a cut would change: the period is no power of two.
func patterned(size int) []byte {
	payload := make([]byte, size)
	for index := range payload {
		payload[index] = byte(index % 251)
	}
	return payload
}

func headers(w *world) {
	c := w.connect()
	w.createTopic(c, 1)
	sizes := map[iggcon.HeaderKind]int{
		iggcon.Raw: 3, iggcon.String: 5, iggcon.Bool: 1, iggcon.Int8: 1, iggcon.Int16: 2, iggcon.Int32: 4,
		iggcon.Int64: 8, iggcon.Int128: 16, iggcon.Uint8: 1, iggcon.Uint16: 2, iggcon.Uint32: 4, iggcon.Uint64: 8,
		iggcon.Uint128: 16, iggcon.Float: 4, iggcon.Double: 8,
	}
	sent := map[string]iggcon.HeaderValue{}
	entries := []iggcon.HeaderEntry{}
	for kind, size := range sizes {
		key, err := iggcon.NewHeaderKeyString(fmt.Sprintf("kind-%d", kind))
		must(err, "header key")
		value := iggcon.HeaderValue{Kind: kind, Value: bytes.Repeat([]byte{1}, size)}
		sent[string(key.Value)] = value
		entries = append(entries, iggcon.HeaderEntry{Key: key, Value: value})
	}
	entries = append(entries, iggcon.HeaderEntry{Key: iggcon.NewHeaderKeyInt32(7), Value: sent["kind-2"]})
	messages := []iggcon.IggyMessage{
		message([]byte("with headers"), iggcon.WithUserHeaders(entries)),
		message([]byte("without")),
	}
	must(c.SendMessages(id(w.name), id(topic), iggcon.PartitionId(0), messages), "send")
	polled := w.poll(c, 0, iggcon.FirstPollingStrategy(), 2)
	found, err := iggcon.DeserializeHeaders(polled[0].UserHeaders)
	must(err, "headers")
	expectEqual(len(found), len(entries), "count of headers")
	for _, entry := range found {
		if entry.Key.Kind == iggcon.Int32 {
			expectEqual(entry.Key, iggcon.NewHeaderKeyInt32(7), "a key that is a number")
		} else {
			expectEqual(entry.Value, sent[string(entry.Key.Value)], "header "+string(entry.Key.Value))
		}
	}
	expectEqual(len(polled[1].UserHeaders), 0, "headers of the second message")
}
