package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// action is one ACTION of the format with its options. Exactly one of the first seven fields is set; a nil
// RawMessage is an absent field, an explicit null is the text null.
type action struct {
	Invoke      json.RawMessage            `json:"invoke"`
	Resume      json.RawMessage            `json:"resume"`
	ResumeMap   map[string]json.RawMessage `json:"resume_map"`
	Command     *commandDoc                `json:"command"`
	UpdateState *updateDoc                 `json:"update_state"`
	GetState    json.RawMessage            `json:"get_state"`
	History     bool                       `json:"history"`

	// The options of run actions.
	RecursionLimit  *int     `json:"recursion_limit"`
	InterruptBefore nodeList `json:"interrupt_before"`
	InterruptAfter  nodeList `json:"interrupt_after"`
	Durability      string   `json:"durability"`
	Modes           []string `json:"modes"`
	Subgraphs       bool     `json:"subgraphs"`

	// Where the action takes place.
	FromCheckpoint *int     `json:"from_checkpoint"`
	Thread         string   `json:"thread"`
	Subgraph       []string `json:"subgraph"`
}

// commandDoc is the command of a run action.
type commandDoc struct {
	Resume    json.RawMessage            `json:"resume"`
	ResumeMap map[string]json.RawMessage `json:"resume_map"`
	Update    json.RawMessage            `json:"update"`
	Goto      []json.RawMessage          `json:"goto"`
}

// updateDoc is an update_state; Values is an object or null.
type updateDoc struct {
	Values json.RawMessage `json:"values"`
	AsNode string          `json:"as_node"`
}

// The stream modes that cases ask for.
const (
	modeValues  = "values"
	modeUpdates = "updates"
	modeCustom  = "custom"
	modeTasks   = "tasks"
)

// durabilities are the modes that a run can be asked for; "" is the engine's own.
var durabilities = []string{"", "sync", "async", "exit"}

// defaultModes are the modes of a run action that names none.
var defaultModes = []string{modeValues, modeUpdates, modeCustom}

// defaultRecursionLimit is the limit of a run action that names none.
const defaultRecursionLimit = 25

// isRun reports whether the action runs the graph.
func (a *action) isRun() bool {
	return a.Invoke != nil || a.Resume != nil || a.ResumeMap != nil || a.Command != nil
}

// thread is the thread the action is about.
func (a *action) thread() string {
	if a.Thread == "" {
		return "1"
	}
	return a.Thread
}

// check refuses actions that say nothing, several things, or something that would be ignored.
func (a *action) check() error {
	forms := 0
	for _, given := range []bool{a.Invoke != nil, a.Resume != nil, a.ResumeMap != nil, a.Command != nil,
		a.UpdateState != nil, a.GetState != nil, a.History} {
		if given {
			forms++
		}
	}
	if forms != 1 {
		return fmt.Errorf("an action has one of invoke, resume, resume_map, command, update_state, get_state, "+
			"history; this one has %d of them", forms)
	}
	if a.isRun() {
		return a.checkRun()
	}
	if a.RecursionLimit != nil || a.InterruptBefore != nil || a.InterruptAfter != nil || a.Durability != "" ||
		a.Modes != nil || a.Subgraphs {
		return errors.New("it has an option that only run actions take")
	}
	if a.History && a.FromCheckpoint != nil {
		return errors.New("history takes no from_checkpoint")
	}
	if s := string(a.GetState); a.GetState != nil && s != "true" && s != `"subgraphs"` {
		return fmt.Errorf("get_state is true or \"subgraphs\", got %s", s)
	}
	return nil
}

func (a *action) checkRun() error {
	if a.Subgraph != nil {
		return errors.New("a run action takes no subgraph")
	}
	if !slices.Contains(durabilities, a.Durability) {
		return fmt.Errorf("unknown durability %q", a.Durability)
	}
	for _, mode := range a.Modes {
		if !slices.Contains([]string{modeValues, modeUpdates, modeCustom, modeTasks}, mode) {
			return fmt.Errorf("unknown stream mode %q", mode)
		}
	}
	if c := a.Command; c != nil && c.Resume != nil && c.ResumeMap != nil {
		return errors.New("a command has resume or resume_map, not both")
	}
	return nil
}

// command is what the action asks of the engine beside new input: resume and resume_map are short for a command.
func (a *action) command() commandDoc {
	if a.Command != nil {
		return *a.Command
	}
	return commandDoc{Resume: a.Resume, ResumeMap: a.ResumeMap}
}
