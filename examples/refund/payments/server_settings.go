package payments

import (
	"net/http"
)

// putOrder creates an order, or replaces one without refunds.
func (s *Server) putOrder(w http.ResponseWriter, r *http.Request) {
	order := Order{ID: r.PathValue("id"), Currency: DefaultCurrency}
	if err := decode(w, r, &order); err != nil {
		s.fail(w, r, err)
		return
	}
	if order.ID != r.PathValue("id") {
		s.fail(w, r, refuse(statusInvalid, CodeInvalidOrder, "the body is for order %q, the path for %q", order.ID, r.PathValue("id")))
		return
	}
	created, err := s.store.putOrder(r.Context(), order)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, statusOf(created), order)
}

// putFaults replaces the faults of the path that the body names.
func (s *Server) putFaults(w http.ResponseWriter, r *http.Request) {
	faults := Faults{Path: PathRefunds}
	if err := decode(w, r, &faults); err != nil {
		s.fail(w, r, err)
		return
	}
	if err := s.store.setFaults(r.Context(), faults); err != nil {
		s.fail(w, r, err)
		return
	}
	s.log.Info("faults set", "faults", faults)
	s.reply(w, http.StatusOK, faults)
}

func (s *Server) deleteFaults(w http.ResponseWriter, r *http.Request) {
	if err := s.store.clearFaults(r.Context()); err != nil {
		s.fail(w, r, err)
		return
	}
	s.log.Info("faults cleared")
	w.WriteHeader(http.StatusNoContent)
}
