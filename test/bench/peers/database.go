package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"superstep.dev/test/bench/testbed"
)

// database is where a server, or a saver, keeps things.
type database interface {
	// read returns how many transactions have written to it since some time, and how many bytes it has now; NaN for what it does
	// not tell.
	read() (transactions, size float64)
}

// sqliteFile is the path of an SQLite database with a write-ahead log.
type sqliteFile string

// read has what the header of the log's index says, of what is in the log as well
// (https://www.sqlite.org/walformat.html: iChange, szPage and nPage, in the machine's byte order).
func (path sqliteFile) read() (transactions, size float64) {
	f, err := os.Open(string(path) + "-shm")
	if err != nil {
		return math.NaN(), math.NaN()
	}
	defer f.Close()
	var header [24]byte
	if _, err := f.Read(header[:]); err != nil {
		return math.NaN(), math.NaN()
	}
	page := float64(binary.NativeEndian.Uint16(header[14:]))
	if page == 1 {
		page = 1 << 16
	}
	return float64(binary.NativeEndian.Uint32(header[8:])), page * float64(binary.NativeEndian.Uint32(header[20:]))
}

// postgresServer is a PostgreSQL server, all databases together, asked by a psql that stays.
type postgresServer struct {
	in  io.Writer
	out *bufio.Reader
}

// readPostgres has the number that the next transaction that writes will get, which those that only read do not use up.
const readPostgres = "SELECT pg_snapshot_xmax(pg_current_snapshot()), sum(pg_database_size(oid)) FROM pg_database;\n"

// askPostgres connects to a server; the database is nil where there is no psql. end disconnects, for which the server waits
// before it ends.
func askPostgres(dsn string) (d database, end func() error) {
	psql := exec.Command(testbed.FindPostgres("psql"), "-XAtq", "-F", " ", "-d", databaseOf(dsn, "postgres"))
	in, errIn := psql.StdinPipe()
	out, errOut := psql.StdoutPipe()
	if errors.Join(errIn, errOut) != nil || psql.Start() != nil {
		return nil, func() error { return nil }
	}
	return &postgresServer{in, bufio.NewReader(out)}, func() error { return errors.Join(in.Close(), psql.Wait()) }
}

func (p *postgresServer) read() (transactions, size float64) {
	_, err := io.WriteString(p.in, readPostgres)
	if err == nil {
		_, err = fmt.Fscan(p.out, &transactions, &size)
	}
	if err != nil {
		return math.NaN(), math.NaN()
	}
	return transactions, size
}

// databaseOf is the DSN of another database of the same server.
func databaseOf(dsn, name string) string { return dsn[:strings.LastIndex(dsn, "/")+1] + name }

// filesOf is how many bytes the files below a directory have; 0 for "".
func filesOf(dir string) (size float64) {
	if dir == "" {
		return 0
	}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what goes while one looks is not there
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			size += float64(info.Size())
		}
		return nil
	})
	return size
}
