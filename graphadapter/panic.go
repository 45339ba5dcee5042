package graphadapter

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// PanicError says that a node or one of its functions panicked. It is a failure of the node like any other, except
// that the default retry policy does not repeat it: a panic is a mistake in the program.
type PanicError struct {
	// Message is the panic's value as text.
	Message string
	// Where is the function that panicked, the last part of its file's name and the line: "shop.pay (pay.go:42)". Of a panic
	// within the standard library it is the function that called that. "" when it is not known.
	Where string
	// Stack is the goroutine's stack, for logs; it is not part of the error's message.
	Stack []byte
	// Cause is the panic's value when it was an error.
	Cause error
}

func (e *PanicError) Error() string {
	if e.Where == "" {
		return "panic: " + e.Message
	}
	return "panic: " + e.Message + ", in " + e.Where
}

// Unwrap returns the error that was panicked with, nil if it was something else.
func (e *PanicError) Unwrap() error { return e.Cause }

// ErrorType names the kind of failure in stored data.
func (e *PanicError) ErrorType() string { return "Panic" }

// Catch turns a panic of the function that defers it into a *PanicError.
func Catch(err *error) {
	if r := recover(); r != nil {
		*err = NewPanicError(r)
	}
}

// NewPanicError returns the error of a recovered panic, with the place in the node's code and the stack.
func NewPanicError(value any) *PanicError {
	cause, _ := value.(error)
	return &PanicError{Message: fmt.Sprint(value), Where: wherePanicked(), Stack: debug.Stack(), Cause: cause}
}

// panicDepth is how many functions are looked at, from the one that handles the panic: it, those of the runtime, and those of
// the standard library that the node's code has called.
const panicDepth = 64

// wherePanicked is the innermost function of a module that a panic has passed. It is called while that is handled.
func wherePanicked() string {
	callers := make([]uintptr, panicDepth)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	panicked, innermost := false, ""
	for {
		frame, more := frames.Next()
		frame.Function = strings.ReplaceAll(frame.Function, "%2e", ".") // as the linker writes a dot in a package's last name
		switch {
		case frame.Function == "runtime.gopanic":
			panicked = true
		case !panicked || strings.HasPrefix(frame.Function, "runtime."):
		case ofAModule(frame.Function):
			return placeOf(frame)
		case innermost == "":
			innermost = placeOf(frame)
		}
		if !more {
			return innermost
		}
	}
}

// placeOf names a function as Go does, by its package, and the file without the machine's directories.
func placeOf(f runtime.Frame) string {
	return fmt.Sprintf("%s (%s:%d)", f.Function, path.Base(f.File), f.Line)
}

// modules are the paths of the modules that this program is built of. The standard library is none of them.
var modules = sync.OnceValue(func() (all []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range append(info.Deps, &info.Main) {
		all = append(all, m.Path)
	}
	return all
})

// ofAModule reports whether a function is of a module, or of the program itself.
func ofAModule(function string) bool {
	return strings.HasPrefix(function, "main.") || slices.ContainsFunc(modules(), func(module string) bool {
		return module != "" && strings.HasPrefix(function, module) && strings.IndexAny(function[len(module):], "./_") == 0
	})
}
