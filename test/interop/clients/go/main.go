// Runs scenarios with the official Go client against one server: one JSON line per scenario.
//
//	go-client --transport tcp --tcp HOST:PORT --websocket HOST:PORT --quic HOST:PORT --http HOST:PORT SCENARIO...
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
)

const module = "github.com/apache/iggy/foreign/go"

// Result is what came of one scenario.
type Result struct {
	Client    string `json:"client"`
	Version   string `json:"version"`
	Transport string `json:"transport"`
	Scenario  string `json:"scenario"`
	OK        bool   `json:"ok"`
	Detail    string `json:"detail"`
}

var scenarios = map[string]func(*world){
	"system":             system,
	"streams-and-topics": streamsAndTopics,
	"partitions":         partitions,
	"partitioning":       partitioning,
	"polling":            polling,
	"payloads":           payloads,
	"headers":            headers,
	"consumer-offsets":   consumerOffsets,
	"consumer-groups":    consumerGroups,
	"tokens":             tokens,
	"users":              users,
	"permissions":        permissions,
	"errors":             errorCodes,
	"restart":            restart,
}

func main() {
	transport := flag.String("transport", "tcp", "only tcp: the client has no other")
	tcp := flag.String("tcp", "", "address of the server's TCP listener")
	flag.String("websocket", "", "not used")
	flag.String("quic", "", "not used")
	flag.String("http", "", "not used")
	flag.Parse()
	// The client logs failed heartbeats; while a server restarts that is expected.
	log.SetOutput(io.Discard)
	for _, name := range flag.Args() {
		result := Result{Client: "go", Version: version(), Transport: *transport, Scenario: name}
		result.OK, result.Detail = run(name, &world{address: *tcp, name: fmt.Sprintf("%s-go", name)})
		line, _ := json.Marshal(result)
		fmt.Println(string(line))
	}
}

// run reports whether the scenario held. A scenario that does not ends by a panic that says why.
func run(name string, w *world) (ok bool, detail string) {
	defer func() {
		if failure := recover(); failure != nil {
			ok, detail = false, fmt.Sprint(failure)
		}
	}()
	scenario, known := scenarios[name]
	if !known {
		return false, "no such scenario"
	}
	defer w.close()
	scenario(w)
	return true, ""
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version[1:]
		}
	}
	fmt.Fprintln(os.Stderr, "the client is not among the build's modules")
	return ""
}
