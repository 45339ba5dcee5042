package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// What PostgreSQL says went wrong.
const (
	codeNoSuchDatabase       = "3D000"
	codeDuplicateDatabase    = "42P04"
	codeLockNotAvailable     = "55P03"
	codeInsufficientRights   = "42501"
	codeWrongPassword        = "28P01"
	codeNotAuthorized        = "28000"
	codeTooManyConnections   = "53300"
	classInsufficientStorage = "53"
)

func hasCode(err error, code string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == code
}

// taught adds what the user can do about an error of PostgreSQL's.
func (s *postgresStore) taught(err error) error {
	hint := s.hint(err)
	if hint == "" {
		return err
	}
	return fmt.Errorf("%s: %s: %w", s.name(), hint, err)
}

func (s *postgresStore) hint(err error) string {
	var answer *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &answer):
		return s.hintFor(answer.Code)
	case errors.As(err, &connect):
		return "cannot be reached: start PostgreSQL, or correct host, port and sslmode of the DSN"
	default:
		return ""
	}
}

func (s *postgresStore) hintFor(code string) string {
	switch {
	case code == codeWrongPassword, code == codeNotAuthorized:
		return fmt.Sprintf("does not let user %s in: correct user and password of the DSN, or its pg_hba.conf", s.at.User)
	case code == codeInsufficientRights:
		return fmt.Sprintf("user %s may not do this: let an administrator create %s and %s with that user as OWNER, or ALTER ROLE it CREATEDB",
			s.at.User, s.at.Database, s.visibility().Database)
	case code == codeTooManyConnections:
		return fmt.Sprintf("has no connection free: a devserver takes up to %d, so raise its max_connections or close others",
			4*(mainConns+visibilityConns)+1)
	case strings.HasPrefix(code, classInsufficientStorage):
		return "is out of room: free disk space or memory there"
	default:
		return ""
	}
}
