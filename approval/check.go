package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Normal returns the action as it is asked about: checked, with the hash of its parameters, the words that "" stands for
// spelled out, and its permissions sorted. The error is that of [Action.Check].
func (a Action) Normal() (Action, error) {
	if err := a.Check(); err != nil {
		return Action{}, err
	}
	a.ParamsHash, _ = HashParams(a.Params) // checked
	a.Risk = cmp.Or(a.Risk, RiskMedium)
	a.Silence = cmp.Or(a.Silence, SilenceDeny)
	a.Drift = cmp.Or(a.Drift, DriftAsk)
	a.Quorum = max(a.Quorum, 1)
	a.ValidFor = a.Validity(0).Milliseconds()
	a.Permissions = slices.Compact(slices.Sorted(slices.Values(a.Permissions)))
	return a, nil
}

// Check returns an [*InvalidError] when the action cannot be asked about. Its parameters are one JSON value of at most
// [MaxParams] bytes, whose names differ by more than case; its summary one line of 1 to [MaxSummary] bytes; names have
// at most [MaxName] bytes; lists at most [MaxApprovers] entries; the quorum is at most [MaxQuorum] and can be met; times
// are at most [MaxWithin]. ParamsHash is not looked at.
func (a Action) Check() error {
	for _, check := range []func() (string, string){a.checkWhat, a.checkNeeds, a.checkPeople, a.checkTimes, a.checkSilence, a.checkShown} {
		if field, problem := check(); problem != "" {
			return &InvalidError{Of: "action", Name: a.Tool, Field: field, Problem: problem}
		}
	}
	return nil
}

// field is one text of an action and the most bytes that it may have.
type field struct {
	name, text string
	most       int
}

func firstProblem(fields ...field) (string, string) {
	for _, f := range fields {
		if problem := lineProblem(f.text, f.most); problem != "" {
			return f.name, problem
		}
	}
	return "", ""
}

func (a Action) checkWhat() (string, string) {
	switch {
	case a.Tool == "":
		return "tool", "name what would be done"
	case a.Summary == "":
		return "summary", "say in one sentence what would happen: people decide by it"
	case a.PlanVersion < 0:
		return "plan_version", "it is not negative"
	}
	if name, problem := firstProblem(
		field{"tool", a.Tool, MaxName}, field{"tool_version", a.ToolVersion, MaxName}, field{"summary", a.Summary, MaxSummary},
		field{"key", a.Key, MaxReason}, field{"requester", a.Requester, MaxName}, field{"undo", a.Undo, MaxReason},
	); problem != "" {
		return name, problem
	}
	return "params", paramsProblem(a.Params)
}

func (a Action) checkNeeds() (string, string) {
	if problem := wordProblem(a.Risk, RiskLow, RiskMedium, RiskHigh, RiskCritical); problem != "" && a.Risk != "" {
		return "risk", problem
	}
	if problem := wordProblem(a.Drift, DriftAsk, DriftReplan, DriftStop); problem != "" && a.Drift != "" {
		return "drift", problem
	}
	if problem := namesProblem(a.Permissions); problem != "" {
		return "permissions", problem
	}
	if len(a.Watch) > MaxApprovers {
		return "watch", fmt.Sprintf("at most %d", MaxApprovers)
	}
	for _, name := range sortedNames(a.Watch) {
		if problem := nameProblem(name); problem != "" {
			return "watch", problem
		}
		if problem := lineProblem(a.Watch[name], MaxReason); problem != "" {
			return "watch." + name, problem
		}
	}
	return "", ""
}

func (a Action) checkPeople() (string, string) {
	if problem := namesProblem(a.Approvers); problem != "" {
		return "approvers", problem
	}
	if problem := namesProblem(a.Escalate); problem != "" {
		return "escalate", problem
	}
	if a.Quorum < 0 || a.Quorum > MaxQuorum {
		return "quorum", fmt.Sprintf("it is 0 to %d", MaxQuorum)
	}
	people := len(slices.Compact(slices.Sorted(slices.Values(a.Approvers))))
	if people > 0 && people < a.Quorum && !slices.ContainsFunc(a.Approvers, isGroup) {
		return "quorum", fmt.Sprintf("%d people must approve and only %d are asked: it can never be met", a.Quorum, people)
	}
	return "", ""
}

func (a Action) checkTimes() (string, string) {
	switch {
	case a.Within < 0 || a.Within > MaxWithin:
		return "within_ms", fmt.Sprintf("it is 0, for ever, to %d milliseconds", MaxWithin)
	case a.Warn < 0:
		return "warn_ms", "it is not negative"
	case a.Warn > 0 && a.Warn >= a.Within:
		return "warn_ms", "people are warned before the end: it is less than within_ms"
	case a.ValidFor < 0 || a.ValidFor > MaxWithin:
		return "valid_for_ms", fmt.Sprintf("it is 0, which follows from the risk, to %d milliseconds", MaxWithin)
	}
	return "", ""
}

func (a Action) checkSilence() (string, string) {
	silence := wordProblem(a.Silence, SilenceDeny, SilenceDefault, SilenceEscalate, SilencePause)
	otherwise := wordProblem(a.Default, VerdictApprove, VerdictReject)
	switch {
	case silence != "" && a.Silence != "":
		return "silence", silence
	case a.Silence != "" && a.Silence != SilenceDeny && a.Within == 0:
		return "silence", "without within_ms it is never reached"
	case a.Silence == SilenceDefault && otherwise != "":
		return "default", otherwise
	case a.Silence != SilenceDefault && a.Default != "":
		return "default", "it goes with silence default only"
	case a.Silence == SilenceEscalate && len(a.Escalate) == 0:
		return "escalate", "name who is asked when nobody has answered"
	case a.Silence != SilenceEscalate && len(a.Escalate) > 0:
		return "escalate", "it goes with silence escalate only"
	}
	return "", ""
}

func (a Action) checkShown() (string, string) {
	if len(a.Secrets) > MaxApprovers {
		return "secrets", fmt.Sprintf("at most %d", MaxApprovers)
	}
	for _, pointer := range a.Secrets {
		if _, err := splitPointer(pointer); err != nil {
			return "secrets", err.Error()
		}
	}
	return "", ""
}

const groupPrefix = "group:"

func isGroup(name string) bool { return strings.HasPrefix(name, groupPrefix) }

func namesProblem(names []string) string {
	if len(names) > MaxApprovers {
		return fmt.Sprintf("at most %d, these are %d", MaxApprovers, len(names))
	}
	for _, name := range names {
		if problem := nameProblem(name); problem != "" {
			return problem
		}
	}
	return ""
}

func nameProblem(name string) string {
	if strings.TrimSpace(strings.TrimPrefix(name, groupPrefix)) == "" {
		return "a name is empty"
	}
	return lineProblem(name, MaxName)
}

func oneOf[T comparable](word T, words ...T) bool { return slices.Contains(words, word) }

// wordProblem says why a word is none of those, "" when it is one.
func wordProblem[T ~string](word T, words ...T) string {
	if oneOf(word, words...) {
		return ""
	}
	known := make([]string, len(words))
	for i, w := range words {
		known[i] = string(w)
	}
	return fmt.Sprintf("%s is not one of %s", quote(string(word)), strings.Join(known, ", "))
}

// The most that an action and a reply may hold. Sizes are in bytes.
const (
	MaxParams    = 64 << 10
	MaxSummary   = 300
	MaxReason    = 1_000
	MaxApprovers = 50                           // also permissions, secrets and watched states
	MaxName      = 200                          // names of people, tools, permissions; versions
	MaxWithin    = int64(366 * 24 * 3600 * 1e3) // milliseconds: a leap year
)

// InvalidError says what is wrong with an action, a reply or what is to be signed.
type InvalidError struct {
	// Of is "action", "reply", "token" or "key".
	Of string
	// Name is the action's tool, "" for the others.
	Name string
	// Field is the one at fault, as it is spelled in JSON; "" for the whole.
	Field   string
	Problem string
}

// Error implements error.
func (e *InvalidError) Error() string {
	text := e.Of
	if e.Name != "" {
		text += " " + quote(e.Name)
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Problem
}

// lineProblem says why text is not one line of at most that many bytes, "" when it is.
func lineProblem(text string, most int) string {
	switch {
	case len(text) > most:
		return fmt.Sprintf("it has at most %d bytes, this one has %d", most, len(text))
	case !utf8.ValidString(text):
		return "it is not valid UTF-8"
	case strings.ContainsFunc(text, unprintable):
		return "it is one line without control characters"
	}
	return ""
}

// unprintable also holds the marks that make a line read differently from how it is stored: an approver sees the text.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
