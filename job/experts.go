package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// plainName is a name without what planners get wrong: case, spaces and punctuation. A name that has nothing else is
// itself.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	if plain == "" {
		return name
	}
	return plain
}

// expertOf finds an expert by its name, or by one that differs in case, spaces and punctuation only; nil when there is
// none. No two experts of a job are alike in that.
func expertOf(name string, experts []Profile) *Profile {
	at := slices.IndexFunc(experts, func(p Profile) bool { return p.Name == name })
	if at < 0 {
		plain := plainName(name)
		at = slices.IndexFunc(experts, func(p Profile) bool { return plainName(p.Name) == plain })
	}
	if at < 0 {
		return nil
	}
	return &experts[at]
}

func (b *Board) expert(name string) *Profile { return expertOf(name, b.Experts) }

// assignable are the experts that plans may name.
func (b *Board) assignable() []Profile {
	return slices.DeleteFunc(slices.Clone(b.Experts), func(p Profile) bool { return p.Retired })
}

func unknownExpert(name string, experts []Profile) string {
	names := make([]string, len(experts))
	for i, p := range experts {
		names[i] = p.Name
	}
	return fmt.Sprintf("there is no expert %q; there are: %s", clip(name, 2*MaxID), clip(strings.Join(names, ", "), 2048))
}

// putExpert adds an expert, in the place of one of the same name.
func (b *Board) putExpert(p Profile) *RefusedError {
	problem := tooLong(text{"name", p.Name, MaxID}, text{"description", p.Description, MaxNote}, text{"version", p.Version, MaxID},
		text{"graph", p.Graph, 256}, text{"task queue", p.TaskQueue, 256})
	switch {
	case p.Name == "" || p.Graph == "":
		problem = "it has no name or no graph"
	case p.Timeout < 0:
		problem = "its timeout is negative"
	}
	if problem != "" {
		return b.refuse("bad_expert", fmt.Sprintf("expert %q: %s", clip(p.Name, 2*MaxID), problem), "")
	}
	experts := slices.Clone(b.Experts)
	if known := expertOf(p.Name, experts); known == nil {
		experts = append(experts, p)
	} else if known.Name != p.Name {
		return b.refuse("bad_expert", fmt.Sprintf("experts %q and %q are too much alike to be told apart in a plan", known.Name, p.Name),
			"rename one")
	} else {
		*known = p
	}
	if size := expertsSize(experts); len(experts) > MaxExperts || size > MaxExpertText {
		return b.refuse("bad_expert", fmt.Sprintf("%d experts with %d bytes of descriptions are too many; %d with %d may be",
			len(experts), size, MaxExperts, MaxExpertText), "shorten descriptions")
	}
	b.Experts = experts
	return nil
}

func expertsSize(experts []Profile) int {
	n := 0
	for _, p := range experts {
		n += 128 + quoted(p.Name) + quoted(p.Description) + quoted(p.Version) + quoted(p.Graph) + quoted(p.TaskQueue)
	}
	return n
}

// AddExpert lets plans assign an expert from now on. One of the same name is replaced: also what is assigned to it
// already runs as the new profile says, from the next attempt on.
func (b *Board) AddExpert(p Profile, by string, now time.Time) error {
	now = stamp(now)
	if err := b.goesOn(); err != nil {
		return err
	}
	p.Retired = false
	if err := b.putExpert(p); err != nil {
		return err
	}
	b.log(now, Event{Kind: "expert_added", Expert: p.Name, Text: byWhom("", by)})
	return nil
}

// RemoveExpert keeps plans from assigning an expert from now on. What is assigned to it already, it does. The preset
// expert of a job, the one that makes its answer, and the last one stay: code expert_in_use.
func (b *Board) RemoveExpert(name, by string, now time.Time) error {
	now = stamp(now)
	if err := b.goesOn(); err != nil {
		return err
	}
	p := b.expert(name)
	if p == nil || p.Retired {
		return b.refuse("unknown_expert", unknownExpert(name, b.assignable()), "")
	}
	name = p.Name
	switch {
	case name == b.Job.Expert || name == b.Job.Policy.Synthesis:
		return b.refuse("expert_in_use", fmt.Sprintf("expert %q was asked for when the job was submitted", name), "stop the job and submit another one")
	case len(b.assignable()) == 1:
		return b.refuse("expert_in_use", fmt.Sprintf("expert %q is the only one", name), "add another one first")
	}
	assigned := func(s *SubJob) bool { return !s.Legacy && s.Expert == name }
	if slices.ContainsFunc(b.SubJobs, assigned) {
		p.Retired = true
	} else {
		b.Experts = slices.DeleteFunc(slices.Clone(b.Experts), func(p Profile) bool { return p.Name == name })
	}
	b.log(now, Event{Kind: "expert_removed", Expert: name, Text: byWhom("", by)})
	return nil
}

// goesOn refuses what only a job can take that runs and is not about to end.
func (b *Board) goesOn() error {
	switch {
	case b.Status == StatusFinished:
		return b.refuse("not_running", "it has finished", "submit another job")
	case b.Status.Final():
		return b.refuse("not_running", fmt.Sprintf("it has ended: %s", b.Status), "recover it first")
	case b.Ending != "":
		return b.refuse("not_running", fmt.Sprintf("it is about to end: %s", b.Ending), "recover it once it has ended")
	}
	return nil
}
