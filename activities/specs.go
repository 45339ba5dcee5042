package activities

import (
	"context"
	"fmt"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Specs returns the graph that a run goes on with, as the run itself knows it.
type Specs func(ctx context.Context, run Run) (*pregel.Spec, error)

// specTimeout bounds how long a run is asked for its graph.
const specTimeout = 5 * time.Second

// specs are the graphs that runs go on with and this worker's are not, by their fingerprints.
type specs struct {
	ask   Specs
	known sync.Map // of *pregel.Spec
	here  sync.Map // fingerprints of the graphs that the worker serves, by name
}

// differs reports whether a graph is another version than that of the fingerprint.
func (s *specs) differs(g *graphadapter.Graph, print string) (bool, error) {
	here, known := s.here.Load(g.Spec.Name)
	if !known {
		made, err := graphadapter.Fingerprint(g.Spec)
		if err != nil {
			return false, err
		}
		s.here.Store(g.Spec.Name, made)
		here = made
	}
	return here != print, nil
}

// began returns the graph of a run that is of another version than this worker's; nil when it is the same.
func (s *specs) began(ctx context.Context, g *graphadapter.Graph, run Run, print string) (*pregel.Spec, error) {
	if s.ask == nil || print == "" {
		return nil, nil
	}
	if other, err := s.differs(g, print); err != nil || !other {
		return nil, err
	}
	if spec, known := s.known.Load(print); known {
		return spec.(*pregel.Spec), nil
	}
	ctx, cancel := context.WithTimeout(ctx, specTimeout)
	defer cancel()
	spec, err := s.ask(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("this worker has another version of the graph %q than the run, which does not say which it has: %w", g.Spec.Name, err)
	}
	s.known.Store(print, spec)
	return spec, nil
}
