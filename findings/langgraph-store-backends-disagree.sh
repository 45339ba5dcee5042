#!/usr/bin/env bash
# langgraph 1.2.24, langgraph-checkpoint-sqlite 3.1.2: one store interface, two backends.
#
# Guess: what InMemoryStore answers SqliteStore answers too, so tests on the one hold for the other.
# Seen: NaN comes back as None from SQLite. "$gt" on texts compares numbers in memory and letters in SQLite. "$ne"
# finds items without the field in memory, and not in SQLite. A nested filter is taken in memory and refused in SQLite.
# A limit of -1 leaves the last item out in memory and is no limit in SQLite. An item that is put again is created anew
# in memory, and keeps when it was created in SQLite.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.24 langgraph-checkpoint-sqlite==3.1.2
"$dir/venv/bin/python" - <<'PYTHON'
import math
import sqlite3

from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
sqlite = SqliteStore(connection)
sqlite.setup()


def found(store, **given):
    return sorted(item.key for item in store.search(("n",), **given))


def answers(store):
    store.put(("n",), "nine", {"text": "9", "part": {"x": 1}})
    store.put(("n",), "ten", {"text": "10", "number": math.nan})
    number = store.get(("n",), "ten").value["number"]
    try:
        nested = found(store, filter={"part": {"x": 1}})
    except ValueError:
        nested = "refused"
    before = store.get(("n",), "nine").created_at
    store.put(("n",), "nine", {"text": "9", "part": {"x": 1}})
    return {
        "NaN": None if number is None else str(number),
        "text > 9": found(store, filter={"text": {"$gt": "9"}}),
        "number != 5": found(store, filter={"number": {"$ne": 5}}),
        "nested": nested,
        "limit -1": len(store.search(("n",), limit=-1)),
        "created at the first put": store.get(("n",), "nine").created_at == before,
    }


memory, file = answers(InMemoryStore()), answers(sqlite)
print("memory:", memory)
print("sqlite:", file)
assert memory == {
    "NaN": "nan", "text > 9": ["ten"], "number != 5": ["nine", "ten"], "nested": ["nine"], "limit -1": 1,
    "created at the first put": False,
}
assert file == {
    "NaN": None, "text > 9": [], "number != 5": [], "nested": "refused", "limit -1": 2, "created at the first put": True,
}
PYTHON
