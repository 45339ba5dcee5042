package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

const (
	// noValues is the value of --values that leaves large values in the database.
	noValues = "none"
	// valuesSuffix names the directory beside a database file.
	valuesSuffix = ".values"
	// valuesKey is the entry of the namespace's data that says where large values
	// lie: a file URL, "" for nowhere. Programs of this machine read it once.
	valuesKey = "superstep.storage"
	// valuesID is the file by which a program sees that the directory is this one,
	// and not that of another machine in the same place.
	valuesID = "id"
)

// openValues makes the directory of large values when there is none, and returns
// what the namespace announces: "" for no directory.
func openValues(dir string) (announced string, err error) {
	if dir == "" {
		return "", nil
	}
	dir, err = filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("cannot use %s for large values: choose another --values, or %s: %w", dir, noValues, err)
	}
	id, err := idOf(dir)
	if err != nil {
		return "", fmt.Errorf("cannot write to %s, where large values are to lie: choose another --values, or %s: %w", dir, noValues, err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir), RawQuery: url.Values{valuesID: {id}}.Encode()}).String(), nil
}

// idOf reads the id of a directory, and gives it one when it has none. A start
// that is killed in the middle leaves none, or all of it.
func idOf(dir string) (string, error) {
	path := filepath.Join(dir, valuesID)
	text, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(text)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id := rand.Text()
	if err := os.WriteFile(path+".new", []byte(id+"\n"), 0o600); err != nil {
		return "", err
	}
	return id, os.Rename(path+".new", path)
}

// announce tells programs where large values lie and live tokens go, if they were
// told anything else before: each entry is one of the namespace's data, "" for
// nowhere.
func announce(ctx context.Context, c client.Client, entries map[string]string) error {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("describe namespace %s: %w", namespace, err)
	}
	told := described.GetNamespaceInfo().GetData()
	news := maps.Clone(entries)
	maps.DeleteFunc(news, func(key, value string) bool { return told[key] == value })
	if len(news) == 0 {
		return nil
	}
	_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: namespace, UpdateInfo: &namespacepb.UpdateNamespaceInfo{Data: news},
	})
	if err != nil {
		return fmt.Errorf("write into namespace %s where large values lie and live tokens go: %w", namespace, err)
	}
	return nil
}
