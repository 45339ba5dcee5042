package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// folder is a directory that the programs of this machine share, beside the
// server's database file.
type folder struct {
	// flag names it on the command line, and suffix beside a database file.
	flag, suffix string
	// key is the entry of the namespace's data that says where it is: a file URL,
	// "" for nowhere. Programs of this machine read it once.
	key string
	// what lies there.
	what string
}

var (
	valuesFolder = folder{"values", ".values", "superstep.storage", "large values"}
	storeFolder  = folder{"store", ".store", "superstep.store", "the store of graphs"}
)

const (
	// noFolder is the value of a folder's flag that has none.
	noFolder = "none"
	// folderID is the file by which a program sees that the directory is this one,
	// and not that of another machine in the same place.
	folderID = "id"
)

// open makes the directory when there is none, and returns what the namespace
// announces: "" for no directory.
func (f folder) open(dir string) (announced string, err error) {
	if dir == "" {
		return "", nil
	}
	dir, err = filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("cannot use %s for %s: choose another --%s, or %s: %w", dir, f.what, f.flag, noFolder, err)
	}
	id, err := idOf(dir)
	if err != nil {
		return "", fmt.Errorf("cannot write to %s, where %s is to lie: choose another --%s, or %s: %w", dir, f.what, f.flag, noFolder, err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir), RawQuery: url.Values{folderID: {id}}.Encode()}).String(), nil
}

// idOf reads the id of a directory, and gives it one when it has none. A start
// that is killed in the middle leaves none, or all of it.
func idOf(dir string) (string, error) {
	path := filepath.Join(dir, folderID)
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

// announcements say where folders lie and live tokens go, by their keys in the
// namespace's data: "" for nowhere.
type announcements map[string]string

// openFolders makes the directories that the options ask for.
func openFolders(o options) (announcements, error) {
	all := announcements{}
	for f, given := range map[folder]string{valuesFolder: o.values, storeFolder: o.storeDir} {
		var err error
		if all[f.key], err = f.open(o.folder(f, given)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// announce tells programs so, if they were told anything else
// before.
func (all announcements) announce(ctx context.Context, c client.Client) error {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("describe namespace %s: %w", namespace, err)
	}
	told := described.GetNamespaceInfo().GetData()
	same := true
	for key, announced := range all {
		same = same && told[key] == announced
	}
	if same {
		return nil
	}
	_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace:  namespace,
		UpdateInfo: &namespacepb.UpdateNamespaceInfo{Data: all},
	})
	if err != nil {
		return fmt.Errorf("write into namespace %s where folders lie and live tokens go: %w", namespace, err)
	}
	return nil
}
