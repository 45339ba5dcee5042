package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Notice tells people outside that something happened to a question, a plain one too. Of what would be done it says what
// the summary says, and holds no parameters but their hash.
type Notice struct {
	// ID is the same each time that the notice is sent, and of no other notice: a receiver that has it drops the notice.
	ID string `json:"id"`
	// Kind is KindAsked, KindWarned, KindEscalated, KindExpired or KindAnswered.
	Kind     Kind      `json:"kind"`
	At       time.Time `json:"at"`
	Thread   string    `json:"thread"`
	Graph    string    `json:"graph"`
	Node     string    `json:"node"`
	Question string    `json:"question"`
	// Summary is what is asked, in one line of at most 300 bytes.
	Summary string `json:"summary"`
	// The next six are of an approval: what would be done and with which parameters, its risk, who is asked, by when, and
	// what follows from silence.
	Tool       string    `json:"tool,omitempty"`
	ParamsHash string    `json:"params_hash,omitempty"`
	Risk       Risk      `json:"risk,omitempty"`
	Approvers  []string  `json:"approvers,omitempty"`
	Due        time.Time `json:"due,omitzero"`
	Silence    Silence   `json:"silence,omitempty"`
	// By is who answered, "" when that is not known.
	By string `json:"by,omitempty"`
}

// Name returns the notice with its ID, which follows from thread, question, kind and deadline.
func (n Notice) Name() Notice {
	due := ""
	if !n.Due.IsZero() {
		due = strconv.FormatInt(n.Due.UnixMilli(), 10)
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{n.Thread, n.Question, string(n.Kind), due}, "\x00")))
	n.ID = "n-" + hex.EncodeToString(sum[:16])
	return n
}

// Notifier tells people outside. It is used by many activities at once.
type Notifier interface {
	// Targets names who is told, each by a name that stays the same and holds no secret.
	Targets() []string
	// Notify tells one of the targets, and returns when that has the notice. It may be told again what it has been told. An
	// error with a method Permanent() bool that returns true ends the attempts; after any other there are more.
	Notify(ctx context.Context, target string, n Notice) error
}
