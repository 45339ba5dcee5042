package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"superstep.dev"
	"superstep.dev/message"
)

type tellsState struct {
	Dir      superstep.Value[string] `json:"dir"`
	Count    superstep.Value[int]    `json:"count"`
	Said     superstep.List[string]  `json:"said"`
	Messages superstep.Messages      `json:"messages"`
}

// tells is a node that says words, as messages and as it likes. A test steers it by files of a directory: "upto" is how many words
// it may say, and one more lets it end; "words" is what they begin with. While there is a file "lingers" an execution that is told to end does
// not; it writes "left" when it does.
func tells() superstep.Runnable {
	g := superstep.NewStateGraph[tellsState]("tells")
	g.AddNode("say", func(ctx context.Context, s tellsState) (tellsState, error) {
		dir := s.Dir.Get()
		begin, err := os.ReadFile(filepath.Join(dir, "words"))
		if err != nil {
			return s, err
		}
		m := message.Message{ID: "said", Role: message.RoleAssistant}
		var whole strings.Builder
		for n := range s.Count.Get() {
			if err := allowed(ctx, dir, n+1); err != nil {
				return s, err
			}
			word := fmt.Sprintf("%s%d ", begin, n+1)
			whole.WriteString(word)
			m.Content = message.Text(word)
			if err := superstep.EmitMessage(ctx, m); err != nil {
				return s, err
			}
			if err := superstep.Emit(ctx, word); err != nil {
				return s, err
			}
		}
		m.Content = message.Text(whole.String())
		s.Messages.Append(m)
		return s, allowed(ctx, dir, s.Count.Get()+1)
	})
	g.AddNode("rest", func(_ context.Context, s tellsState) (tellsState, error) {
		s.Said.Append("all")
		return s, nil
	})
	chain(g, "say", "rest")
	return g.MustCompile()
}

// allowed waits until a test allows so many words.
func allowed(ctx context.Context, dir string, words int) error {
	for {
		text, err := os.ReadFile(filepath.Join(dir, "upto"))
		if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && n >= words {
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), linger(dir))
		}
	}
}

// linger keeps an execution that was told to end, while a test wants that.
func linger(dir string) error {
	for {
		if _, err := os.Stat(filepath.Join(dir, "lingers")); err != nil {
			return os.WriteFile(filepath.Join(dir, "left"), nil, 0o600)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
