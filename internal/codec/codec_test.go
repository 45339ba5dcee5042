package codec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/internal/codec"
)

// packed hides what it converts, as a codec that encrypts does.
var packed = converter.NewCodecDataConverter(converter.GetDefaultDataConverter(),
	converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))

func TestFailuresGoThroughTheCodec(t *testing.T) {
	failures := codec.Failures(packed)
	f := failures.ErrorToFailure(temporal.NewNonRetryableApplicationError("card 4111", "declined", errors.New("card 4111"), "card 4111"))
	require.NotContains(t, f.String(), "4111")
	require.Equal(t, "card 4111", codec.Message(packed, f))
	require.Equal(t, "Encoded failure", f.GetMessage(), "the failure stays as it was")
	require.Equal(t, "Encoded failure", codec.Message(converter.GetDefaultDataConverter(), f))

	var application *temporal.ApplicationError
	require.ErrorAs(t, failures.FailureToError(f), &application)
	var detail string
	require.NoError(t, application.Details(&detail))
	require.Equal(t, []string{"card 4111", "declined", "card 4111"}, []string{application.Message(), application.Type(), detail})
	// An error that was read is written as encoded as it was.
	require.NotContains(t, failures.ErrorToFailure(temporal.NewApplicationErrorWithCause("again", "again", application)).String(), "4111")
}

func TestPlainFailuresAreRead(t *testing.T) {
	plain := temporal.GetDefaultFailureConverter().ErrorToFailure(errors.New("in the open"))
	require.Equal(t, "in the open", codec.Message(packed, plain))
	require.True(t, strings.Contains(codec.Failures(packed).FailureToError(plain).Error(), "in the open"))
	require.Empty(t, codec.Message(packed, nil))
}

func TestShowsFindsConvertersThatHideNothing(t *testing.T) {
	half := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: packed})
	bare := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{EncodeCommonAttributes: true})
	require.True(t, codec.Shows(temporal.GetDefaultFailureConverter(), packed))
	require.True(t, codec.Shows(half, packed), "messages are readable")
	require.True(t, codec.Shows(bare, packed), "details are readable")
	require.False(t, codec.Shows(codec.Failures(packed), packed))
	require.False(t, codec.Shows(temporal.GetDefaultFailureConverter(), converter.GetDefaultDataConverter()), "there is nothing to hide")
}
