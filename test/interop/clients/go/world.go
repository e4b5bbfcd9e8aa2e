package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	iggy "github.com/apache/iggy/foreign/go/client"
	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
	ierror "github.com/apache/iggy/foreign/go/errors"
)

const (
	username = "iggy"
	password = "iggy"
	topic    = "events"
	// How long a change may take to be seen.
	patience = 20 * time.Second
)

// world is the server under test, and what a scenario opened on it.
type world struct {
	address string
	// name of the scenario's own stream
	name    string
	clients []iggcon.Client
}

func (w *world) close() {
	for _, opened := range w.clients {
		_ = opened.Close()
	}
}

func (w *world) dial() (iggcon.Client, error) {
	opened, err := client(w.address)
	if err == nil {
		w.clients = append(w.clients, opened)
	}
	return opened, err
}

func client(address string) (iggcon.Client, error) {
	return iggy.NewIggyClient(iggy.WithTcp(tcp.WithServerAddress(address)))
}

// connect opens a client and logs in.
func (w *world) connect() iggcon.Client {
	return w.connectAs(username, password)
}

func (w *world) connectAs(name, secret string) iggcon.Client {
	opened, err := w.dial()
	must(err, "connect")
	_, err = opened.LoginUser(name, secret)
	must(err, "login of "+name)
	return opened
}

// createTopic makes the scenario's stream with one topic.
func (w *world) createTopic(c iggcon.Client, partitionsCount uint32) {
	_, err := c.CreateStream(w.name)
	must(err, "create stream")
	_, err = createTopic(c, id(w.name), topic, partitionsCount)
	must(err, "create topic")
}

func createTopic(c iggcon.Client, stream iggcon.Identifier, name string, partitionsCount uint32) (*iggcon.TopicDetails, error) {
	return c.CreateTopic(stream, name, partitionsCount, iggcon.CompressionAlgorithmNone, iggcon.IggyExpiryNeverExpire, 0, nil)
}

func (w *world) send(c iggcon.Client, partitioning iggcon.Partitioning, texts ...string) error {
	messages := make([]iggcon.IggyMessage, 0, len(texts))
	for _, text := range texts {
		messages = append(messages, message([]byte(text)))
	}
	return c.SendMessages(id(w.name), id(topic), partitioning, messages)
}

func (w *world) poll(c iggcon.Client, partition uint32, strategy iggcon.PollingStrategy, count uint32) []iggcon.IggyMessage {
	polled, err := c.PollMessages(id(w.name), id(topic), iggcon.NewSingleConsumer(numeric(1)), strategy, count, false, &partition)
	must(err, "poll")
	return polled.Messages
}

func message(payload []byte, options ...iggcon.IggyMessageOpt) iggcon.IggyMessage {
	made, err := iggcon.NewIggyMessage(payload, options...)
	must(err, "message")
	return made
}

func id(name string) iggcon.Identifier {
	made, err := iggcon.NewIdentifier(name)
	must(err, "identifier "+name)
	return made
}

func numeric(number uint32) iggcon.Identifier {
	made, err := iggcon.NewIdentifier(number)
	must(err, "identifier")
	return made
}

func must(err error, what string) {
	if err != nil {
		panic(fmt.Sprintf("%s: %v", what, err))
	}
}

func expect(condition bool, what string) {
	if !condition {
		panic(what)
	}
}

func expectEqual(found, expected any, what string) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("%s: expected %v, found %v", what, expected, found))
	}
}

// expectError: the call failed with the error of one of these numbers.
func expectError(err error, what string, codes ...ierror.Code) {
	var known interface{ Code() ierror.Code }
	if errors.As(err, &known) {
		for _, code := range codes {
			if known.Code() == code {
				return
			}
		}
		panic(fmt.Sprintf("%s: expected error %v, found %d: %v", what, codes, known.Code(), err))
	}
	panic(fmt.Sprintf("%s: expected error %v, found %v", what, codes, err))
}

// eventually looks every 20 ms until the condition holds: the client has no event for it.
func eventually(condition func() bool, what string) {
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		expect(time.Now().Before(deadline), fmt.Sprintf("%s: not within %v", what, patience))
	}
}

// ask asks the test for what only it can do, and waits until it is done.
func ask(question string) {
	fmt.Printf("{\"ask\":%q}\n", question)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}
