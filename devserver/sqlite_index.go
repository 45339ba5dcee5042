package main

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
)

// lookedUp are the columns of the visibility store that people look runs up by,
// beside those of [attributeFields]: each keeps its index.
//
// The server's schema has an index for each of its columns, 58 in all, and a row
// whose run starts, changes or ends is written into every one of them, for nearly
// all of which nobody ever asks: 5 ms of the only connection for each run, where
// 14 indexes take 2, and 20 KiB of the file instead of 5. A list by any other column
// reads the runs of its namespace, newest first, which on one machine is no loss.
var lookedUp = []string{
	"workflow_id", "workflow_type_name", "status",
	"parent_workflow_id", "root_workflow_id", // relatives, as the Web UI shows them
	"TemporalScheduledById", "TemporalNamespaceDivision", // schedules, and their runs
}

// dropIndexes drops the indexes of the visibility store that nobody needs. The one
// that lists are sorted by has an expression in place of a column, and stays.
func dropIndexes(tx *sql.Tx) error {
	kept := slices.Concat(lookedUp, slices.Collect(maps.Keys(attributeFields())))
	rows, err := tx.Query(`SELECT i.name, c.name
		FROM pragma_index_list('executions_visibility') i JOIN pragma_index_xinfo(i.name) c ON c.seqno = 1
		WHERE i.origin = 'c' AND c.name IS NOT NULL`)
	if err != nil {
		return fmt.Errorf("list the indexes: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err below has the error of reading
	var drop []string
	for rows.Next() {
		var index, column string
		if err := rows.Scan(&index, &column); err != nil {
			return fmt.Errorf("list the indexes: %w", err)
		}
		if !slices.Contains(kept, column) {
			drop = append(drop, index)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("list the indexes: %w", err)
	}
	for _, index := range drop {
		if _, err := tx.Exec("DROP INDEX " + index); err != nil {
			return fmt.Errorf("drop index %s: %w", index, err)
		}
	}
	return nil
}

// attributeFields are the columns of the search attributes: those of its type in
// the order of the attributes' names, so that a new database has an index for each.
func attributeFields() map[string]string {
	all, fields, used := searchAttributes(), map[string]string{}, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		kind := all[name].String()
		used[kind]++
		fields[fmt.Sprintf("%s%02d", kind, used[kind])] = name
	}
	return fields
}
