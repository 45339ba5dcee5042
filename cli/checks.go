package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"superstep.dev/job"
	"superstep.dev/thread"
)

// The bounds of what is typed, in bytes. They keep nonsense from the server, which has bounds of its own.
const (
	// maxName bounds the names of threads, graphs, nodes and requests.
	maxName       = 200
	maxCheckpoint = 200
	maxSubgraph   = 4 << 10 // a path
	maxReason     = 1000
	maxJobReason  = 1024
)

// argumentChecks refuse arguments that cannot be what they are called in the usage line.
var argumentChecks = map[string]func(string) error{
	"THREAD": checkThread, "QUESTION": checkQuestion, "GRAPH": checkGraphName, "JOB": checkJob, "SCHEDULE": checkSchedule,
	"SUBJOB":     func(id string) error { return checkID("the subjob's id", id) },
	"CHECKPOINT": func(id string) error { return checkCheckpoint("CHECKPOINT", id) },
}

func checkArguments(names, args []string) error {
	for i, name := range names {
		plain := strings.Trim(name, "[]")
		if check := argumentChecks[plain]; check != nil && (args[i] != "" || plain == name) {
			if err := check(args[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// anyBytes are the flags, by what help calls their values, that name files, whose names are any bytes, or take JSON, which says itself
// where it is no text.
var anyBytes = []string{"FILE", "FILES", "DIR", "PLACE", "JSON"}

// checkUTF8 refuses arguments and flags that are no text, before they are sent: a server takes none, or stores another text.
func checkUTF8(flags *pflag.FlagSet, names, args []string) (err error) {
	check := func(what, text string) {
		if at := invalidUTF8([]byte(text)); at >= 0 && err == nil {
			err = usagef("%s is not UTF-8 at %s", what, position([]byte(text), at))
		}
	}
	for i, name := range names {
		check(strings.Trim(name, "[]"), args[i])
	}
	flags.Visit(func(f *pflag.Flag) {
		if called, _ := pflag.UnquoteUsage(f); slices.Contains(anyBytes, called) {
			return
		}
		texts := []string{f.Value.String()}
		if many, ok := f.Value.(pflag.SliceValue); ok {
			texts = many.GetSlice()
		}
		for _, text := range texts {
			check("--"+f.Name, text)
		}
	})
	return err
}

// checkThread refuses what cannot be a thread's id, and a dash in front that would make it a flag.
func checkThread(id string) error {
	if strings.HasPrefix(id, "-") {
		return usagef("the thread id %s begins with a dash, which would make it a flag", quoted(id))
	}
	var bad *thread.Error
	if errors.As(thread.CheckID(id), &bad) {
		return usagef("%s", bad.Message)
	}
	return nil
}

// checkSchedule refuses what cannot be the name of a schedule, which is as ids of threads are.
func checkSchedule(id string) error {
	if err := checkThread(id); err != nil {
		return usagef("SCHEDULE: %s", strings.ReplaceAll(err.Error(), "thread id", "name"))
	}
	return nil
}

// checkGraphName refuses what cannot be a graph's name.
func checkGraphName(name string) error {
	switch {
	case name == "":
		return usagef("the graph's name is empty")
	case len(name) > maxName:
		return usagef("the graph's name has %d bytes; at most %d are allowed", len(name), maxName)
	case strings.Contains(name, "."):
		return usagef("the graph's name %s has a dot, which no graph's name has", quoted(name))
	case strings.HasPrefix(name, "-") || !utf8.ValidString(name) || strings.ContainsFunc(name, notPrintable):
		return usagef("%s cannot be a graph's name", quoted(name))
	}
	return nil
}

// checkQuestion refuses what cannot be a question's id or the start of one.
func checkQuestion(id string) error {
	if len(id) > maxName || strings.ContainsFunc(id, notPrintable) {
		return usagef("%s cannot be a question's id", quoted(id))
	}
	return nil
}

// checkPerson refuses what cannot be the name of a person or a group; "" is for none.
func checkPerson(name string) error {
	if len(name) > maxName || strings.ContainsFunc(name, notPrintable) {
		return usagef("%s cannot be a name", quoted(name))
	}
	return nil
}

// checkCheckpoint refuses what cannot be a checkpoint's id; what names where it was given. "" is for none.
func checkCheckpoint(what, id string) error {
	if len(id) > maxCheckpoint || !utf8.ValidString(id) || strings.ContainsFunc(id, notPrintable) {
		return usagef("%s %s cannot be a checkpoint's id", what, quoted(id))
	}
	return nil
}

// checkJob refuses what cannot be a job's id.
func checkJob(id string) error { return checkID("the job's id", id) }

// checkID refuses what cannot be the id of a job or a subjob.
func checkID(what, id string) error {
	switch {
	case id == "":
		return usagef("%s is empty", what)
	case len(id) > job.MaxID:
		return usagef("%s has %d bytes; at most %d are allowed", what, len(id), job.MaxID)
	case strings.HasPrefix(id, "-"):
		return usagef("%s %s begins with a dash, which would make it a flag", what, quoted(id))
	case strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "":
		return usagef("%s %s may have letters, digits, dots, underscores and dashes only", what, quoted(id))
	}
	return nil
}

// checkLength bounds a text that a flag takes.
func checkLength(flag, text string, most int) error {
	if len(text) > most {
		return usagef("%s has %d bytes; at most %d are allowed", flag, len(text), most)
	}
	return nil
}

// checkBetween bounds a number that a flag takes.
func checkBetween(flag string, n, least, most int) error {
	if n < least || n > most {
		return usagef("%s %d is not between %d and %d", flag, n, least, most)
	}
	return nil
}

// maxNodes bounds the nodes that a flag names.
const maxNodes = 1000

func checkNodes(flag string, nodes []string) error {
	if len(nodes) > maxNodes {
		return usagef("%s names %d nodes; at most %d are allowed", flag, len(nodes), maxNodes)
	}
	for _, node := range nodes {
		if node == "" || len(node) > maxName || strings.ContainsFunc(node, notPrintable) {
			return usagef("%s %s cannot be a node's name", flag, quoted(node))
		}
	}
	return nil
}

// howMany counts what is given of things that exclude each other.
func howMany(given ...bool) int {
	return len(slices.DeleteFunc(given, func(g bool) bool { return !g }))
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }

// quoted shows what a user typed within a message, bounded.
func quoted(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// place is where in a thread a command looks or writes: a checkpoint of its history, and a subgraph under way.
type place struct{ at, in string }

// register adds --in, and --at with the words for it unless they are "".
func (p *place) register(flags *pflag.FlagSet, at string) {
	if at != "" {
		flags.StringVar(&p.at, "at", "", at)
	}
	flags.StringVar(&p.in, "in", "", "subgraph under way in `NODE/NODE`: the nodes that lead to it, outermost first")
}

// subgraph returns the nodes that lead to the subgraph, none for the graph itself, and refuses a place that cannot be one.
func (p *place) subgraph() (nodes []string, err error) {
	if p.in != "" {
		nodes = strings.Split(p.in, "/")
	}
	bad := func(node string) bool {
		return node == "" || !utf8.ValidString(node) || strings.ContainsFunc(node, notPrintable)
	}
	if slices.ContainsFunc(nodes, bad) {
		err = usagef("--in %s is not NODE or NODE/NODE", quoted(p.in))
	}
	return nodes, cmp.Or(checkLength("--in", p.in, maxSubgraph), err, checkCheckpoint("--at", p.at))
}
