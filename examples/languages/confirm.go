// SPDX-License-Identifier: Apache-2.0

// Confirms orders such as {"id": 7}. {"id": 7, "fails": 1} fails once before it works.
//
// No client is needed: this is the whole lines protocol, with a goroutine for each message. It
// answers on the descriptor in LANEWAY_FD, so that prints do no harm.
//
//	go build -o confirm-go confirm.go
package main

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"os"
	"strconv"
	"sync"
)

type request struct {
	Hello   *struct{ Protocol int } `json:"hello"`
	ID      int64                   `json:"id"`
	Value   string                  `json:"value"`
	Attempt int                     `json:"attempt"`
}

type answer struct {
	ID     int64  `json:"id"`
	Result string `json:"result"`
	Reason string `json:"reason,omitempty"`
	Delay  string `json:"delay,omitempty"`
	Reply  string `json:"reply,omitempty"`
}

func confirm(message request) answer {
	var order struct {
		ID    *int64 `json:"id"`
		Fails int    `json:"fails"`
	}
	if err := json.Unmarshal([]byte(message.Value), &order); err != nil {
		return answer{Result: "dead", Reason: "bad order: " + err.Error()}
	}
	if order.ID == nil {
		return answer{Result: "dead", Reason: "bad order: no id"}
	}
	if message.Attempt <= order.Fails {
		return answer{Result: "retry", Reason: "database timeout", Delay: "10ms"}
	}
	return answer{Result: "ok", Reply: `{"confirmed":` + strconv.FormatInt(*order.ID, 10) + `}`}
}

func main() {
	fd, err := strconv.Atoi(os.Getenv("LANEWAY_FD"))
	if err != nil {
		log.Fatal("this is a handler: laneway run starts it")
	}
	var mutex sync.Mutex
	answers := json.NewEncoder(os.NewFile(uintptr(fd), "answers"))
	say := func(what any) {
		mutex.Lock()
		defer mutex.Unlock()
		if err := answers.Encode(what); err != nil {
			log.Fatal(err)
		}
	}
	var working sync.WaitGroup
	for input := bufio.NewReader(os.Stdin); ; {
		line, err := input.ReadBytes('\n')
		if err == io.EOF {
			break // finish what is held, then exit
		}
		var message request
		if err != nil || json.Unmarshal(line, &message) != nil {
			log.Fatalf("not the lines protocol: %.80q", line)
		}
		if message.Hello != nil {
			say(map[string]any{"ready": map[string]any{"protocol": 1, "concurrent": true}})
			continue
		}
		working.Add(1)
		go func() {
			defer working.Done()
			result := confirm(message)
			result.ID = message.ID
			say(result)
		}()
	}
	working.Wait()
}
