package archive_test

import (
	"context"
	"fmt"
	"log"

	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/thread/archive"
)

// An archived thread is read as it was read on its server. Keys are given where payloads are encrypted: as DataConverter, to both.
func ExampleOpen() {
	kept, err := archive.Open("/srv/superstep/archives") // or one file of it
	if err != nil {
		log.Fatal(err) // it was cut, or changed
	}
	defer kept.Close()
	c, err := kept.Client(client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	threads, err := superstep.NewClient(c, superstep.ClientConfig{Storage: kept.Storage()})
	if err != nil {
		log.Fatal(err)
	}
	view, err := threads.Show(context.Background(), "r-7")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(view.Status, view.Output)
}
