package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// client keeps as many connections as there are streams.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10_000}}

type object = map[string]any

// ask makes a request, and decodes the answer; into may be nil.
func ask(ctx context.Context, method, url string, body, into any) error {
	resp, err := send(ctx, client, method, url, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// send makes a request; an answer that refuses is an error.
func send(ctx context.Context, by *http.Client, method, url string, body any) (*http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := by.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // as much as there is
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, said)
	}
	return resp, nil
}

// thread makes a thread.
func thread(ctx context.Context, base string) (string, error) {
	var made struct {
		ID string `json:"thread_id"`
	}
	err := ask(ctx, http.MethodPost, base+"/threads", object{}, &made)
	return made.ID, err
}

// clockRun is a run of the clock.
func clockRun(p pace) object {
	return object{"assistant_id": "clock", "input": object{"pace": p}, "stream_mode": []string{"custom"}}
}

// begin begins a run of the clock on a thread of its own, and returns the path of its stream.
func begin(ctx context.Context, base string, p pace) (string, error) {
	id, err := thread(ctx, base)
	if err != nil {
		return "", err
	}
	var run struct {
		ID string `json:"run_id"`
	}
	body := clockRun(p)
	body["stream_resumable"] = true
	err = ask(ctx, http.MethodPost, base+"/threads/"+id+"/runs", body, &run)
	return base + "/threads/" + id + "/runs/" + run.ID + "/stream", err
}

// heard is what a reader has of a stream: how late each tick was read that counts, in milliseconds.
type heard struct {
	late []float64
	// began is the tick with which the execution begins that is heard, since when it runs, and again how often another one took over.
	began, again int
	since        int64
}

// take takes in a tick, which has to be the next one. An execution that another one has taken over from is heard no more.
func (h *heard) take(t tick, read time.Time) error {
	switch {
	case t.Since < h.since:
		return fmt.Errorf("tick %d came of an execution that another one had taken over from", t.N)
	case t.Since > h.since && t.N < len(h.late):
		if t.N != h.began {
			return fmt.Errorf("tick %d came where another execution was due to begin with %d", t.N, h.began)
		}
		h.late = h.late[:h.began]
		h.again++
	case t.Since > h.since:
		h.began = t.N
	}
	if h.since = t.Since; t.N != len(h.late) {
		return fmt.Errorf("tick %d came where %d was due", t.N, len(h.late))
	}
	h.late = append(h.late, float64(read.UnixNano()-t.At)/1e6)
	return nil
}

// ticks reads the ticks of a stream. Each has to come once and in order. first is called when the first one has come.
func ticks(body io.Reader, count int, first func()) (h heard, err error) {
	err = events(body, func(name string, data []byte) error {
		read := time.Now()
		switch name {
		case "error":
			return fmt.Errorf("the stream says: %s", data)
		case "custom":
			var t tick
			if err := json.Unmarshal(data, &t); err != nil {
				return err
			}
			if err := h.take(t, read); err != nil {
				return err
			}
			if len(h.late) == 1 {
				first()
			}
		}
		return nil
	})
	if err == nil && len(h.late) != count {
		err = fmt.Errorf("%d of %d ticks came", len(h.late), count)
	}
	return h, err
}

// events calls on for each event of a stream.
func events(body io.Reader, on func(name string, data []byte) error) error {
	lines := bufio.NewReaderSize(body, 64<<10)
	name := ""
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			if err := on(name, []byte(value)); err != nil {
				return err
			}
		}
	}
}
