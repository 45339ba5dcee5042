// Package announced finds the folders that a devserver shares with the programs of its machine.
package announced

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
	// id is the parameter of the announced URL, and the name of the file in the folder that has the same text.
	id = "id"
	// maxID bounds that text, in bytes.
	maxID = 256
)

// Folder returns the folder that a namespace names in its data under a key, a file URL; "" when it names none, is not there, or may not be
// asked about. An error with a folder is about that: this process does not reach it, or it is another machine's in the same place.
func Folder(ctx context.Context, c client.Client, namespace, key string) (dir string, err error) {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var absent *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &absent), errors.As(err, &denied):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("ask what namespace %s says: %w", namespace, err)
	}
	place := described.GetNamespaceInfo().GetData()[key]
	if place == "" {
		return "", nil
	}
	u, err := url.Parse(place)
	if err != nil || u.Scheme != "file" || !filepath.IsAbs(u.Path) {
		return "", fmt.Errorf("namespace %s names %.200q under %s, which is no file:///DIRECTORY", namespace, place, key)
	}
	dir = filepath.FromSlash(u.Path)
	return dir, sameAs(dir, u.Query().Get(id))
}

// sameAs says why a folder is not the one with that id.
func sameAs(dir, want string) error {
	path := filepath.Join(dir, id)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("it is the server's, and this process does not see it: it runs on another machine than the server, or the directory was moved")
	case err != nil:
		return err
	case info.Size() > maxID:
		return errors.New("it is not the server's directory")
	}
	text, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(text)) != want {
		err = errors.New("it is not the server's directory, but another machine's in the same place")
	}
	return err
}
