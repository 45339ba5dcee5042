package job

// ownSize is what a subjob takes in the job's state as JSON besides its texts: see [MaxPlanText].
const ownSize = 512

// planSize is what a subjob takes of [MaxPlanText]. A dependency counts twice: it may be counted in [SubJob.Reopens] too.
func (s *SubJob) planSize() int {
	n := ownSize + quoted(s.ID) + quoted(s.Goal) + quoted(s.Context) + quoted(s.CompletionCriteria) + quoted(s.Expert) +
		quoted(s.Thinking) + quoted(s.OutputSchema) + quoted(s.Parent)
	for _, d := range s.Dependencies {
		n += dependencySize(d)
	}
	return n
}

func dependencySize(id string) int { return 2 * (quoted(id) + 3) }

func (b *Board) planSize() int {
	n := 0
	for _, s := range b.SubJobs {
		n += s.planSize()
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
		if s.Reason != "" {
			n += quoted(s.Reason)
		}
		for _, lesson := range s.Lessons {
			n += quoted(lesson)
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

// maxLessons bounds the lessons that an attempt is told; the oldest ones are forgotten.
const maxLessons = 8

// learn gives a subjob a lesson for its next attempt, unless it has it already.
func (b *Board) learn(s *SubJob, lesson string) {
	lesson = clip(lesson, MaxNote)
	if lesson == "" {
		return
	}
	for _, known := range s.Lessons {
		if known == lesson {
			return
		}
	}
	if len(s.Lessons) >= maxLessons {
		s.Lessons = s.Lessons[len(s.Lessons)-maxLessons+1:]
	}
	if lesson = b.note(lesson); lesson != "" {
		s.Lessons = append(s.Lessons[:len(s.Lessons):len(s.Lessons)], lesson)
	}
}
