package storage

// MaxValueBytes bounds a value that is stored.
const MaxValueBytes = 256 << 20

// form is how a value is stored.
type form string

// The forms of values. They stand in histories.
const (
	formWhole  form = "whole"  // one object
	formPieces form = "pieces" // an object with the table of its pieces
	formDelta  form = "delta"  // an object that tells it by an earlier value
)

// forms are all there are; a delta names that of its base by its place here.
var forms = []form{formWhole, formPieces, formDelta}

// value says where a value is: what a reference in a history holds.
type value struct {
	space  string // of the thread that it is of
	object string // in that space: the value, the table of its pieces, or a delta
	bytes  int    // of the payload's data
	form   form
}

// root is the name of the object that a reference names.
func (v value) root() string { return v.space + "/" + v.object }
