package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"sync"
	"time"

	"github.com/mattn/go-shellwords"

	"superstep.dev/internal/files"
)

// Options shape [Keys]. The zero value is right for most.
type Options struct {
	// Log is told, once for each, when keys cannot be used that could be before, when they can again (nil), and which keys payloads want that are
	// not there or are wrong. It may be called from several goroutines. Nil tells nobody.
	Log func(problem error)
	// Now is the clock that says which key writes; nil means time.Now.
	Now func() time.Time
}

// Keys encrypt and decrypt with what a file or a command has. They are read again while they are used, so a key that is added
// begins to read within a second in all processes, and to write when it says. What cannot be used, a file that is gone or garbage,
// changes nothing: the keys that were read last stay in force, and Options.Log is told.
//
// They are safe for concurrent use, and one serves any number of clients and workers of a process. A nil *Keys encrypts nothing,
// and says of what is encrypted that there are no keys.
type Keys struct {
	where string
	read  func(urgent bool) (*opener, error)
	log   func(error)
	now   func() time.Time

	mu     sync.Mutex
	said   string
	wanted map[string]bool // keys of which Log was told that payloads want them
}

// mostWanted bounds how many keys that are not there Log is told of: who can write into a history can name any.
const mostWanted = 100

// misses tells that a payload wants a key, and returns the error.
func (k *Keys) misses(err *Error) error {
	k.mu.Lock()
	news := k.log != nil && !k.wanted[err.Key] && len(k.wanted) < mostWanted
	if news {
		if k.wanted == nil {
			k.wanted = map[string]bool{}
		}
		k.wanted[err.Key] = true
	}
	k.mu.Unlock()
	if news {
		k.log(err)
	}
	return err
}

// opener is a Ring that is ready to be used.
type opener struct {
	ring Ring
	with map[string]*sealer
}

func openerOf(text []byte) (*opener, error) {
	ring, err := ParseRing(text)
	if err != nil {
		return nil, err
	}
	o := &opener{ring, map[string]*sealer{}}
	for _, k := range ring.keys {
		o.with[k.ID] = newSealer(k)
	}
	return o, nil
}

// File returns the keys in a file, which has the form that [ParseRing] reads. It must be readable by its owner alone. It is read again when
// the keys are used, at most once a second, and at once for a payload whose key is not there. Replace it as a whole: write a new
// file beside it and rename that, as superstep keys rotate does.
//
// Errors: an [*Error] of the kind ErrBadKeys.
func File(path string, o Options) (*Keys, error) {
	watched := &files.Watched[*opener]{Paths: []string{path}, Make: func(all []files.File) (*opener, error) { return openFiles(path, all) }}
	return open(path, o, func(urgent bool) (*opener, error) {
		get := watched.Get
		if urgent {
			get = watched.Again
		}
		good, _, err := get()
		return good, unreadable(err)
	})
}

func openFiles(path string, all []files.File) (*opener, error) {
	if len(all) != 1 || all[0].Path != path {
		return nil, errors.New("it is a directory")
	}
	if all[0].Mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may read it: its mode is %v; chmod 600 it, and rotate", all[0].Mode.Perm())
	}
	return openerOf(all[0].Text)
}

// unreadable is an error of reading without the path, which is told anyway.
func unreadable(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

const (
	// commandWithin bounds what the command may take.
	commandWithin = 5 * time.Second
	// commandEvery is how old the output may become before the command is run again, beside those who use the keys.
	commandEvery = time.Minute
	// commandUrgent is the least time between two runs for payloads whose key is not there.
	commandUrgent = 2 * time.Second
)

// Command returns the keys that a command writes to its standard output, in the form that [ParseRing] reads: one that asks a vault.
// line is split into words as a shell does it; no shell runs it, so a line with ";", "|", "&", "<" or ">" outside of quotes is
// refused: name a shell for these, as in sh -c 'fetch | unpack'. The command has 5 seconds. It is run again every minute while the
// keys are used, and at once for a payload whose key is not there, at most every two seconds. Nothing that it writes is shown.
//
// Errors: an [*Error] of the kind ErrBadKeys.
func Command(line string, o Options) (*Keys, error) {
	words, err := splitCommand(line)
	if err != nil {
		return nil, &Error{Kind: ErrBadKeys, Where: "the command", Problem: err.Error()}
	}
	c := &command{words: words}
	return open("the command "+words[0], o, c.get)
}

// splitCommand splits a line into words. The splitter stops at the first character that only a shell can act upon and
// returns the words before it without an error, which would run half of the line.
func splitCommand(line string) ([]string, error) {
	splitter := shellwords.NewParser()
	words, err := splitter.Parse(line)
	if err != nil || len(words) == 0 {
		return nil, errors.New("its line cannot be split into words")
	}
	if splitter.Position >= 0 {
		return nil, errors.New("its line needs a shell: write sh -c '...' around it")
	}
	return words, nil
}

// command runs one.
type command struct {
	words []string

	mu      sync.Mutex
	ran     time.Time
	running bool
	good    *opener
	err     error
}

func (c *command) get(urgent bool) (*opener, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Since(c.ran)
	switch {
	case c.good == nil || urgent && since > commandUrgent:
		c.take(c.run()) // whoever else needs the keys waits too
	case since > commandEvery && !c.running:
		c.running = true
		go func() {
			o, err := c.run()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.running = false
			c.take(o, err)
		}()
	}
	return c.good, c.err
}

func (c *command) take(o *opener, err error) {
	if c.ran, c.err = time.Now(), err; err == nil {
		c.good = o
	}
}

func (c *command) run() (*opener, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.words[0], c.words[1:]...)
	cmd.WaitDelay = time.Second // for one whose children keep the output open
	out := &bounded{}
	cmd.Stdout = out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it takes longer than %v", commandWithin)
	case err != nil:
		return nil, fmt.Errorf("it ended with %w; run it by hand to see why", err)
	}
	return openerOf(out.Bytes())
}

// bounded takes as much as a key file may have, and one byte more.
type bounded struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), MaxRingBytes+1-b.Len())])
	return len(p), nil
}

func open(where string, o Options, read func(urgent bool) (*opener, error)) (*Keys, error) {
	k := &Keys{where: where, read: read, log: o.Log, now: o.Now}
	if k.now == nil {
		k.now = time.Now
	}
	good, err := read(false)
	if good == nil || err != nil {
		return nil, k.bad(err)
	}
	return k, nil
}

func (k *Keys) bad(err error) *Error {
	return &Error{Kind: ErrBadKeys, Where: k.where, Problem: err.Error()}
}

// Where names the place of the keys, for people.
func (k *Keys) Where() string { return k.where }

// Ring returns the keys as they are in force now.
func (k *Keys) Ring() Ring { return k.get(false).ring }

// get returns the keys in force, read anew where that is urgent.
func (k *Keys) get(urgent bool) *opener {
	good, err := k.read(urgent)
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	k.mu.Lock()
	news := problem != k.said
	k.said = problem
	k.mu.Unlock()
	if news && k.log != nil {
		if err != nil {
			told := k.bad(err)
			told.Problem += "; those that were read last stay in force"
			err = told
		}
		k.log(err)
	}
	return good
}
