package secret_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"superstep.dev/thread/secret"
)

// Keys in a file encrypt what clients and workers store. A key that is added reads at once, and writes when every process has read it.
func Example() {
	dir, err := os.MkdirTemp("", "keys")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "keys")
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

	ring, _, err := secret.Ring{}.Rotate("march", now, now) // superstep keys new does it
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(file, ring.Text(), 0o600); err != nil {
		panic(err)
	}
	keys, err := secret.File(file, secret.Options{})
	if err != nil {
		panic(err)
	}
	sealed := keys.Converter(nil) // ClientConfig.DataConverter, and WorkerConfig.DataConverter
	payload, err := sealed.ToPayload("a card number")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s with %s\n", payload.Metadata["encoding"], payload.Metadata[secret.MetadataKey])

	var none *secret.Keys
	var text string
	fmt.Println(none.Converter(nil).FromPayload(payload, &text) != nil, sealed.FromPayload(payload, &text), text)
	// Output:
	// binary/superstep-sealed-1 with march
	// true <nil> a card number
}
