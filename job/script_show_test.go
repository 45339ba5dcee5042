package job_test

import (
	"fmt"
	"strings"

	"superstep.dev/job"
)

func (s *session) showEvents() {
	for _, e := range s.board.EventsAfter(s.seen) {
		s.seen = e.Seq
		fmt.Fprintf(&s.out, "  %s", e.Kind)
		for _, part := range []string{attemptText(e.SubJob, e.Attempt), e.Expert, e.Text} {
			if part != "" {
				fmt.Fprintf(&s.out, " %s", flat(part))
			}
		}
		s.out.WriteString("\n")
	}
}

func attemptText(subjob string, attempt int) string {
	if subjob != "" && attempt > 0 {
		return fmt.Sprintf("%s/%d", subjob, attempt)
	}
	return subjob
}

// showStatus shows in a line where the job stands.
func (s *session) showStatus() {
	b := s.board
	fmt.Fprintf(&s.out, "%s", b.Status)
	if b.Phase != "" {
		fmt.Fprintf(&s.out, " %s", b.Phase)
	}
	if b.Reason != "" {
		fmt.Fprintf(&s.out, ": %s", flat(b.Reason))
	}
	s.out.WriteString("\n")
}

func (s *session) showWork(w job.Work) {
	if p := w.Plan; p != nil {
		fmt.Fprintf(&s.out, "PLAN attempt %d, up to %d", p.Attempt, p.MaxSubJobs)
		if p.SubJob != nil {
			fmt.Fprintf(&s.out, ", in the place of %s which said %s%s", p.SubJob.ID, p.Report.Status, inputsText(p.Inputs))
		}
		if p.Lesson != "" {
			fmt.Fprintf(&s.out, ", lesson: %s", p.Lesson)
		}
		s.out.WriteString("\n")
	}
	for _, a := range w.Run {
		fmt.Fprintf(&s.out, "RUN %s by %s: %s%s", attemptText(a.SubJob, a.Attempt), a.Expert, a.Goal, inputsText(a.Inputs))
		if a.Allowance != (job.Budget{}) {
			fmt.Fprintf(&s.out, "; may spend %s", budgetText(a.Allowance))
		}
		for _, lesson := range a.Lessons {
			fmt.Fprintf(&s.out, "; lesson: %s", flat(lesson))
		}
		s.out.WriteString("\n")
	}
	for _, a := range w.Cancel {
		fmt.Fprintf(&s.out, "CANCEL %s\n", attemptText(a.SubJob, a.Attempt))
	}
	if w.CancelPlan {
		s.out.WriteString("CANCEL the plan\n")
	}
	if !w.Wake.IsZero() {
		fmt.Fprintf(&s.out, "WAKE in %s\n", w.Wake.Sub(s.now))
	}
	if w.Done {
		s.out.WriteString("DONE\n")
	}
}

func inputsText(inputs []job.Input) string {
	var out strings.Builder
	for _, in := range inputs {
		text := in.Text
		if in.Stored != nil {
			text = fmt.Sprintf("%d bytes in %s run %s", in.Stored.Bytes, in.Stored.Thread, in.Stored.RunID)
		}
		fmt.Fprintf(&out, "; %s gave %q", in.SubJob, text)
		for _, a := range in.Artifacts {
			fmt.Fprintf(&out, " with %s at %s", a.Name, a.URI)
		}
	}
	return out.String()
}

func budgetText(b job.Budget) string {
	var parts []string
	for _, p := range []struct {
		name  string
		value int64
	}{{"tokens", b.Tokens}, {"micro-USD", b.MicroUSD}, {"writes", b.Writes}, {"seconds", b.Seconds}} {
		if p.value != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.value, p.name))
		}
	}
	return strings.Join(parts, ", ")
}

// show lists the subjobs as people see them.
func (s *session) show() {
	v := s.board.View(s.now)
	fmt.Fprintf(&s.out, "%s plan %d, %d of %d, %s, spent %d tokens", v.Status, v.PlanVersion, v.Finished, v.Total, v.Duration, v.Spent.Tokens)
	if v.Spent.Unknown {
		s.out.WriteString(" at least")
	}
	fmt.Fprintf(&s.out, ", tails %s\n", strings.Join(v.Tails, " "))
	for _, sub := range v.SubJobs {
		fmt.Fprintf(&s.out, "%s %s attempts=%d life=%d %s", sub.ID, sub.Status, sub.Attempts, sub.LifeCycle, sub.Expert)
		if len(sub.Dependencies) > 0 {
			fmt.Fprintf(&s.out, " after %s", strings.Join(sub.Dependencies, " "))
		}
		if sub.Legacy {
			s.out.WriteString(" replaced")
		}
		if sub.Stale {
			s.out.WriteString(" stale")
		}
		if sub.Parent != "" {
			fmt.Fprintf(&s.out, " part of %s", sub.Parent)
		}
		if sub.Reason != "" {
			fmt.Fprintf(&s.out, ": %s", flat(sub.Reason))
		}
		s.out.WriteString("\n")
	}
	if v.Proposed != nil {
		for _, p := range v.Proposed.SubJobs {
			fmt.Fprintf(&s.out, "proposed: %s by %s after %v\n", p.ID, p.Expert, p.Dependencies)
		}
	}
}

// flat is a text on one line.
func flat(text string) string { return strings.ReplaceAll(text, "\n", " / ") }
