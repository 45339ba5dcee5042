package superstep_test

import (
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"superstep.dev"
)

// A codec hides payloads from the server. With Encoded it hides errors too.
func ExampleEncoded() {
	// In place of compression, a codec of yours encrypts.
	packed := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))
	// Dial with these options, and give their DataConverter and FailureConverter to NewClient and NewWorker.
	o := superstep.Encoded(client.Options{DataConverter: packed})
	failure := o.FailureConverter.ErrorToFailure(temporal.NewApplicationError("card 4111 was declined", "declined"))
	fmt.Println(failure.GetMessage(), failure.GetApplicationFailureInfo().GetType())
	fmt.Println(o.FailureConverter.FailureToError(failure))
	// Output:
	// Encoded failure declined
	// card 4111 was declined (type: declined, retryable: true)
}
