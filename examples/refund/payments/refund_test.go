package payments_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
)

func TestOrders(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	for id, amount := range map[string]int64{"o-1042": 25_000, "o-7": 25_000, "o-11": 4_200} {
		order, err := r.Order(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, id, order.ID)
		require.Equal(t, amount, order.Amount)
		require.NotEmpty(t, order.Currency)
		require.NotEmpty(t, order.Customer)
	}
	_, err := r.Order(t.Context(), "o-404")
	require.ErrorIs(t, err, payments.ErrNotFound)
	requireRefused(t, err, http.StatusNotFound, payments.CodeOrderNotFound)

	want := payments.Order{ID: "x.1", Amount: math.MaxInt64, Currency: "USD", Customer: "Kim"}
	stored, err := r.PutOrder(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, want, stored)
	read, err := r.Order(t.Context(), "x.1")
	require.NoError(t, err)
	require.Equal(t, want, read, "int64 amounts survive exactly")
}

func TestPutOrderRefusals(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	for name, order := range map[string]payments.Order{
		"no amount":       {ID: "x"},
		"negative amount": {ID: "x", Amount: -1},
		"currency":        {ID: "x", Amount: 1, Currency: "euro"},
		"id":              {ID: "a b", Amount: 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.PutOrder(t.Context(), order)
			requireRefused(t, err, http.StatusUnprocessableEntity, payments.CodeInvalidOrder)
		})
	}
	refund(t, r.Client, "k", "o-7", 1)
	_, err := r.PutOrder(t.Context(), payments.Order{ID: "o-7", Amount: 1})
	requireRefused(t, err, http.StatusConflict, payments.CodeOrderHasRefunds)
	require.Equal(t, http.StatusUnprocessableEntity, r.send(t, "PUT", "/orders/a", "", `{"id":"b","amount":1}`).StatusCode)
}

func TestRefundIsIdempotent(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	body := `{"order_id":"o-7","amount":100}`
	first := r.send(t, "POST", "/refunds", "k1", body)
	require.Equal(t, http.StatusCreated, first.StatusCode)
	again := r.send(t, "POST", "/refunds", "k1", body)
	require.Equal(t, http.StatusOK, again.StatusCode)
	var one, two payments.Receipt
	require.NoError(t, json.NewDecoder(first.Body).Decode(&one))
	require.NoError(t, json.NewDecoder(again.Body).Decode(&two))
	require.Equal(t, one, two)
	require.Equal(t, "rf-1", one.ID)
	require.Equal(t, "k1", one.Key)
	require.False(t, one.CreatedAt.IsZero())

	for _, other := range []payments.Refund{{OrderID: "o-7", Amount: 101}, {OrderID: "o-11", Amount: 100}, {OrderID: "o-7", Amount: 0}} {
		_, err := r.Refund(t.Context(), "k1", other)
		requireRefused(t, err, http.StatusUnprocessableEntity, payments.CodeKeyReused)
	}
}

func TestRefundLimits(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	ask := func(key, order string, amount int64) error {
		_, err := r.Refund(t.Context(), key, payments.Refund{OrderID: order, Amount: amount})
		return err
	}
	requireRefused(t, ask("k0", "o-11", 0), 422, payments.CodeInvalidAmount)
	requireRefused(t, ask("k1", "o-11", math.MinInt64), 422, payments.CodeInvalidAmount)
	requireRefused(t, ask("k2", "o-11", 4_201), 409, payments.CodeExceedsOrder)
	requireRefused(t, ask("k3", "o-11", math.MaxInt64), 409, payments.CodeExceedsOrder)
	requireRefused(t, ask("k4", "o-404", 1), 404, payments.CodeOrderNotFound)
	require.NoError(t, ask("k5", "o-11", 4_000))
	requireRefused(t, ask("k6", "o-11", 201), 409, payments.CodeExceedsOrder)
	require.NoError(t, ask("k6", "o-11", 200), "a refused key is not used up")

	list, err := r.Refunds(t.Context(), "o-11")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []int64{4_000, 200}, []int64{list[0].Amount, list[1].Amount})
	_, err = r.Refunds(t.Context(), "o-404")
	require.ErrorIs(t, err, payments.ErrNotFound)
}

func TestFindRefund(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	_, found, err := r.FindRefund(t.Context(), "k1")
	require.NoError(t, err)
	require.False(t, found)
	want := refund(t, r.Client, "a/b?c=d&e#f", "o-7", 1)
	got, found, err := r.FindRefund(t.Context(), "a/b?c=d&e#f")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, want, got)
	require.Equal(t, 400, r.send(t, "GET", "/refunds", "", "").StatusCode)
	require.Equal(t, 400, r.send(t, "GET", "/refunds?key=a&order_id=o-7", "", "").StatusCode)
}

func TestReverseRefund(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	receipt := refund(t, r.Client, "k1", "o-11", 4_200)
	other := refund(t, r.Client, "k2", "o-7", 1)
	require.NoError(t, r.ReverseRefund(t.Context(), "k1", receipt.ID), "keys of reversals are apart from those of refunds")
	require.NoError(t, r.ReverseRefund(t.Context(), "k1", receipt.ID))
	requireRefused(t, r.ReverseRefund(t.Context(), "k1", other.ID), 422, payments.CodeKeyReused)
	requireRefused(t, r.ReverseRefund(t.Context(), "k9", receipt.ID), 409, payments.CodeAlreadyReversed)
	for _, id := range []string{"rf-99", "rf-01", "rf-", "x"} {
		requireRefused(t, r.ReverseRefund(t.Context(), "k8", id), 404, payments.CodeRefundNotFound)
	}

	found, _, err := r.FindRefund(t.Context(), "k1")
	require.NoError(t, err)
	require.NotNil(t, found.ReversedAt)
	again := refund(t, r.Client, "k1", "o-11", 4_200)
	require.Equal(t, found, again, "a reversed refund's key still gives its receipt")
	refund(t, r.Client, "k3", "o-11", 4_200)
	require.EqualValues(t, 1, stats(t, r.Client).Reversals.Committed)
}

func TestNotifications(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	note := payments.Notification{OrderID: "o-7", Text: "250.00 is on its way"}
	first, err := r.Notify(t.Context(), "n1", note)
	require.NoError(t, err)
	again, err := r.Notify(t.Context(), "n1", note)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, "nt-1", first.ID)
	found, ok, err := r.FindNotification(t.Context(), "n1")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, first, found)
	_, ok, err = r.FindNotification(t.Context(), "n2")
	require.NoError(t, err)
	require.False(t, ok)

	_, err = r.Notify(t.Context(), "n1", payments.Notification{OrderID: "o-7", Text: "other"})
	requireRefused(t, err, 422, payments.CodeKeyReused)
	_, err = r.Notify(t.Context(), "n2", payments.Notification{OrderID: "o-404", Text: "x"})
	requireRefused(t, err, 404, payments.CodeOrderNotFound)
	_, err = r.Notify(t.Context(), "n2", payments.Notification{OrderID: "o-7"})
	requireRefused(t, err, 422, payments.CodeInvalidNotification)
}

func TestMalformedRequests(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	for name, c := range map[string]struct {
		key, body string
		status    int
	}{
		"no key":        {"", `{"order_id":"o-7","amount":1}`, 400},
		"long key":      {fmt.Sprintf("%0256d", 1), `{"order_id":"o-7","amount":1}`, 400},
		"key with gap":  {"a b", `{"order_id":"o-7","amount":1}`, 400},
		"not JSON":      {"k", `refund please`, 400},
		"unknown field": {"k", `{"order_id":"o-7","amuont":1}`, 400},
		"fraction":      {"k", `{"order_id":"o-7","amount":1.5}`, 400},
		"two values":    {"k", `{"order_id":"o-7","amount":1}{}`, 400},
		"huge":          {"k", `{"order_id":"` + fmt.Sprintf("%070000d", 1) + `"}`, 400},
		"empty":         {"k", ``, 404},
	} {
		t.Run(name, func(t *testing.T) {
			response := r.send(t, "POST", "/refunds", c.key, c.body)
			require.Equal(t, c.status, response.StatusCode)
			var body struct {
				Error struct{ Code, Message string }
			}
			require.NoError(t, json.NewDecoder(response.Body).Decode(&body))
			require.NotEmpty(t, body.Error.Code)
			require.NotEmpty(t, body.Error.Message)
		})
	}
	require.Zero(t, stats(t, r.Client).Refunds.Committed)
	require.Equal(t, http.StatusMethodNotAllowed, r.send(t, "DELETE", "/refunds", "", "").StatusCode)
}

// Many callers with one key: one commit, and everybody gets its receipt.
func TestSameKeyConcurrently(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	const callers = 24
	receipts := make([]payments.Receipt, callers)
	failures := make([]error, callers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			<-start
			receipts[i], failures[i] = r.Refund(t.Context(), "one", payments.Refund{OrderID: "o-7", Amount: 20_000})
		})
	}
	close(start)
	all.Wait()
	require.NoError(t, errors.Join(failures...))
	for _, receipt := range receipts {
		require.Equal(t, receipts[0], receipt)
	}
	got := stats(t, r.Client).Refunds
	require.EqualValues(t, callers, got.Requests)
	require.EqualValues(t, 1, got.Committed)
	require.Equal(t, payments.KeyTraffic{Requests: callers, Committed: 1}, got.ByKey["one"])
}

// Many callers with different keys never give back more than was paid.
func TestOrderIsNeverOverdrawn(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	const callers = 20
	failures := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			_, failures[i] = r.Refund(t.Context(), fmt.Sprint("k", i), payments.Refund{OrderID: "o-11", Amount: 1_000})
		})
	}
	all.Wait()
	refused := 0
	for _, err := range failures {
		if err != nil {
			requireRefused(t, err, 409, payments.CodeExceedsOrder)
			refused++
		}
	}
	require.Equal(t, callers-4, refused)
}
