package main

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestItCanBeInstalled: go install PACKAGE@VERSION refuses a module whose go.mod would mean something else if it were the
// main module.
func TestItCanBeInstalled(t *testing.T) {
	out, err := exec.Command("go", "mod", "edit", "-json", "../../go.mod").Output()
	require.NoError(t, err)
	var mod struct{ Module, Replace, Exclude any }
	require.NoError(t, json.Unmarshal(out, &mod))
	require.NotNil(t, mod.Module)
	require.Nil(t, mod.Replace)
	require.Nil(t, mod.Exclude)
}
