package payments

import (
	"net/http"
)

// refundsLimit bounds the list of one order's refunds.
const refundsLimit = 1000

func (s *Server) getOrder(w http.ResponseWriter, r *http.Request) {
	order, err := s.store.order(r.Context(), r.PathValue("id"))
	s.answer(w, r, order, err)
}

// getRefunds finds one refund by its key, or lists those of an order.
func (s *Server) getRefunds(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	key, order := query.Get("key"), query.Get("order_id")
	if (key == "") == (order == "") {
		s.fail(w, r, refuse(statusMalformed, CodeBadRequest, "give either key or order_id"))
		return
	}
	if order != "" {
		list, err := s.store.refundsOf(r.Context(), order, refundsLimit)
		s.answer(w, r, map[string][]Receipt{"refunds": list}, err)
		return
	}
	if err := checkKey(key); err != nil {
		s.fail(w, r, err)
		return
	}
	receipt, err := s.store.findRefund(r.Context(), key)
	s.answer(w, r, receipt, err)
}

func (s *Server) getNotification(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	if err := checkKey(key); err != nil {
		s.fail(w, r, err)
		return
	}
	delivery, err := s.store.findNotification(r.Context(), key)
	s.answer(w, r, delivery, err)
}

func (s *Server) getStats(w http.ResponseWriter, r *http.Request) {
	stats, err := s.store.stats(r.Context(), r.URL.Query().Get("key"))
	s.answer(w, r, stats, err)
}

func (s *Server) getFaults(w http.ResponseWriter, r *http.Request) {
	list, err := s.store.faults(r.Context())
	s.answer(w, r, map[string][]Faults{"faults": list}, err)
}
