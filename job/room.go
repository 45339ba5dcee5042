package job

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// valid replaces what is not UTF-8, as JSON would.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// text is one that has a bound, with the name under which people know it.
type text struct {
	name, value string
	max         int
}

// tooLong says which of some texts is longer than its bound, or no UTF-8; "" when none is.
func tooLong(texts ...text) string {
	for _, t := range texts {
		switch {
		case len(t.value) > t.max:
			return fmt.Sprintf("its %s has %d bytes; %d may be", t.name, len(t.value), t.max)
		case !utf8.ValidString(t.value):
			return fmt.Sprintf("its %s is not UTF-8", t.name)
		}
	}
	return ""
}

// validID reports whether a text can be a job's id, or part of a subjob's: see [MaxID].
func validID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	}) < 0
}

// artifactsProblem says why artifacts cannot be kept, "" when they can.
func artifactsProblem(artifacts []Artifact) string {
	if len(artifacts) > MaxArtifacts {
		return fmt.Sprintf("it has %d artifacts; %d may be", len(artifacts), MaxArtifacts)
	}
	for _, a := range artifacts {
		if a.Name == "" || a.URI == "" {
			return "an artifact has no name or no URI"
		}
		if problem := tooLong(text{"artifact's name", a.Name, 256}, text{"artifact's URI", a.URI, 2048}, text{"artifact's kind", a.Kind, 128}); problem != "" {
			return problem
		}
	}
	if size := artifactsSize(artifacts); size > MaxArtifactText {
		return fmt.Sprintf("its artifacts take %d bytes; %d may be", size, MaxArtifactText)
	}
	return ""
}

// quoted is how many bytes a text takes in JSON as encoding/json writes it, quotes included: what a bound on stored bytes
// has to count, since one byte may become six.
func quoted(text string) int {
	n := 2
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			n += quotedByte(c)
			i++
			continue
		}
		r, width := utf8.DecodeRuneInString(text[i:])
		if r == '\u2028' || r == '\u2029' || (r == utf8.RuneError && width == 1) {
			n += 6
		} else {
			n += width
		}
		i += width
	}
	return n
}

func quotedByte(c byte) int {
	switch {
	case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f':
		return 2
	case c < ' ' || c == '<' || c == '>' || c == '&':
		return 6
	}
	return 1
}

// clip cuts a text so that it takes at most a number of bytes in JSON, and shows that it did. What is not UTF-8 is replaced.
func clip(text string, room int) string {
	text = valid(text)
	if quoted(text) <= room {
		return text
	}
	const more = "…"
	used := len(more) + 2
	for i, r := range text {
		used += quoted(string(r)) - 2
		if used > room {
			if i == 0 {
				return ""
			}
			return text[:i] + more
		}
	}
	return text
}

// ownSize is what a subjob takes in the job's state as JSON besides its texts: see [MaxPlanText].
const ownSize = 464

// kept is what a text takes as a field in JSON: nothing when there is none.
func kept(field, text string) int {
	if text == "" {
		return 0
	}
	return len(field) + quoted(text) + 4
}

// textSize is what a subjob takes but for its dependencies and its expert.
func (s DraftSubJob) textSize() int {
	return ownSize + kept("id", s.ID) + kept("goal", s.Goal) + kept("context", s.Context) +
		kept("completion_criteria", s.CompletionCriteria) + kept("thinking", s.Thinking) + kept("output_schema", s.OutputSchema)
}

// planSize is what a subjob takes of [MaxPlanText].
func (s *SubJob) planSize() int {
	n := s.textSize() + kept("assigned_expert", s.Expert) + kept("parent", s.Parent)
	for _, d := range s.Dependencies {
		n += quoted(d) + 1
	}
	return n
}

func (b *Board) planSize() int {
	n := 0
	for _, s := range b.SubJobs {
		n += s.planSize()
	}
	return n
}

// maxBlame bounds what the counts of complaints, and the digests of refused outputs, take as JSON.
const maxBlame = 16 << 10

// blame is what counts against maxBlame.
func (b *Board) blame() int {
	n := 0
	for _, s := range b.SubJobs {
		n += s.blame()
	}
	return n
}

func (s *SubJob) blame() int {
	n := kept("refused", s.Refused)
	if len(s.Reopens) > 0 {
		n += len(`"reopens":{},`)
	}
	for _, id := range s.Dependencies {
		if s.Reopens[id] > 0 {
			n += quoted(id) + len(`:100,`)
		}
	}
	return n
}

// note cuts a reason or a lesson to what there is room for.
func (b *Board) note(text string) string {
	if text == "" {
		return ""
	}
	text = clip(text, MaxNote)
	room := MaxNotes - b.notes()
	for _, s := range b.SubJobs {
		if quoted(text) <= room {
			return text
		}
		if s.Status == StatusFinished || s.Legacy {
			for _, lesson := range s.Lessons {
				room += quoted(lesson)
			}
			s.Lessons = nil
		}
	}
	return clip(text, room)
}

// notes is what reasons and lessons take as JSON.
func (b *Board) notes() int {
	n := 0
	for _, s := range b.SubJobs {
		n += kept("reason", s.Reason)
		if len(s.Lessons) > 0 {
			n += len(`"lessons":[],`)
		}
		for _, lesson := range s.Lessons {
			n += quoted(lesson) + 1
		}
	}
	for _, p := range b.Plans {
		n += quoted(p.Lesson)
		if p.Report != nil {
			n += quoted(p.Report.Evaluation) + quoted(p.Report.Lesson)
		}
	}
	return n
}

// inline is what outputs and references to artifacts take as JSON.
func (b *Board) inline() int {
	n := 0
	for _, s := range b.SubJobs {
		if s.Result != nil && (s.Result.Text != "" || len(s.Result.Artifacts) > 0) {
			n += quoted(s.Result.Text) + artifactsSize(s.Result.Artifacts)
		}
	}
	for _, p := range b.Plans {
		if p.Report != nil {
			n += quoted(p.Report.Output) + artifactsSize(p.Report.Artifacts)
		}
	}
	return n
}

func artifactsSize(artifacts []Artifact) int {
	n := 0
	for _, a := range artifacts {
		n += 32 + quoted(a.Name) + quoted(a.URI) + quoted(a.Kind)
	}
	return n
}

// maxLessons bounds the lessons of an attempt; the oldest ones are forgotten.
const maxLessons = 8

// learn gives a subjob a lesson for its next attempt, unless it has it already.
func (b *Board) learn(s *SubJob, lesson string) (learned bool) {
	lesson = clip(lesson, MaxNote)
	if lesson == "" {
		return false
	}
	if slices.Contains(s.Lessons, lesson) {
		return true
	}
	if len(s.Lessons) >= maxLessons {
		s.Lessons = s.Lessons[len(s.Lessons)-maxLessons+1:]
	}
	if lesson = b.note(lesson); lesson != "" {
		s.Lessons = append(s.Lessons[:len(s.Lessons):len(s.Lessons)], lesson)
	}
	return lesson != ""
}
