package processes

import (
	"io"
	"os"
	"regexp"
	"strings"
)

// mostOutput bounds what is read of a log, from its end.
const mostOutput = 256 << 10

// output returns what the process wrote, the end of it when that is much.
func (p *Process) output() (string, error) { return readFrom(p.Log(), p.begins) }

// Tail returns the last lines that the process wrote, at most n; "" when it wrote none, or the log is gone.
func (p *Process) Tail(n int) string {
	text, err := p.output()
	if err != nil {
		return ""
	}
	return lastLines(text, n)
}

// Tail returns the last lines of a log, at most n; "" when it is empty or gone.
func Tail(log string, n int) string {
	text, err := readFrom(log, 0)
	if err != nil {
		return ""
	}
	return lastLines(text, n)
}

func readFrom(path string, begins int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	begins = max(begins, info.Size()-mostOutput)
	text, err := io.ReadAll(io.NewSectionReader(file, begins, mostOutput))
	return string(text), err
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// lineLike returns the first whole line that matches, with its submatches; nil when there is none.
func lineLike(pattern *regexp.Regexp, text string) []string {
	for line := range strings.Lines(text) {
		whole, ended := strings.CutSuffix(line, "\n")
		if match := pattern.FindStringSubmatch(whole); ended && match != nil {
			return match
		}
	}
	return nil
}
