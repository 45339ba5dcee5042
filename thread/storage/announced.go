package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

const (
	// announcedKey is the entry of a namespace's data that says where large values lie, a file URL; announcedID is its parameter and
	// the name of the file in the directory that has the same text.
	announcedKey = "superstep.storage"
	announcedID  = "id"
	// maxID bounds that text, in bytes.
	maxID = 256
)

// Announced returns the storage that a namespace names, nil when it names none. The project's devserver names the directory beside its
// database file. Commands and workers of package cli ask a server of their machine; other programs that share threads with these call this
// once, and give what it returns to ClientConfig.Storage and WorkerConfig.Storage.
//
// Errors: an [Error] of the kind ErrUnavailable when this process does not reach the directory, as on another machine, where a directory in
// the same place is another one; what the server says when it cannot be asked. A namespace that is not there, or that may not be asked about,
// names none.
func Announced(ctx context.Context, c client.Client, namespace string, opts Options) (*Storage, error) {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var absent *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &absent), errors.As(err, &denied):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask where the values of namespace %s lie: %w", namespace, err)
	}
	place := described.GetNamespaceInfo().GetData()[announcedKey]
	if place == "" {
		return nil, nil
	}
	u, err := url.Parse(place)
	if err != nil || u.Scheme != "file" || !filepath.IsAbs(u.Path) {
		return nil, fmt.Errorf("namespace %s says that its large values lie in %.200q, which is no file:///DIRECTORY", namespace, place)
	}
	dir := filepath.FromSlash(u.Path)
	if err := sameAs(dir, u.Query().Get(announcedID)); err != nil {
		return nil, &Error{Kind: ErrUnavailable, Where: dir, Cause: err}
	}
	return Files(dir, opts)
}

// sameAs says why a directory is not the one with that id.
func sameAs(dir, id string) error {
	path := filepath.Join(dir, announcedID)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the server's large values lie there, and this process does not see them: it runs on another machine than the server, or the directory was moved")
	case err != nil:
		return err
	case info.Size() > maxID:
		return errors.New("it is not the directory of the server's large values")
	}
	text, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(text)) != id {
		err = errors.New("it is not the directory of the server's large values, but another machine's in the same place")
	}
	return err
}
