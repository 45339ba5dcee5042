#!/usr/bin/env bash
# langgraph-checkpoint 4.3.2: which values come back from a checkpoint as they went in.
#
# Guess: Python's own types come back as they are, or the run fails when they are stored.
# Seen: a tuple comes back as a list, a deque without its bound, a defaultdict and a Counter as a dict, an exception as
# its text, a text with half of a surrogate pair with a question mark; each without a word. A number beyond 64 bits, a
# complex number, a range and a Fraction fail.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.24 langgraph-checkpoint==4.3.2
"$dir/venv/bin/python" - <<'PYTHON'
import collections
import fractions

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

serde = JsonPlusSerializer()


def through(value):
    return serde.loads_typed(serde.dumps_typed(value))


assert through((1, (2,))) == [1, [2]]
bounded = through(collections.deque([1, 2], maxlen=2))
assert isinstance(bounded, collections.deque) and bounded.maxlen is None
for value in (collections.defaultdict(list, a=[1]), collections.Counter("aab"), collections.OrderedDict(b=1, a=2)):
    assert type(through(value)) is dict, value
assert through({"failure": ValueError("late")}) == {"failure": "ValueError('late')"}
assert through("half \ud83d") == "half ?"
assert through(2**64 - 1) == 2**64 - 1
refused = []
for value in (2**64, 1 + 2j, range(3), fractions.Fraction(1, 3)):
    try:
        through(value)
    except TypeError as error:
        refused.append(str(error))
print("refused:", refused)
assert len(refused) == 4
print("tuple -> list, deque(maxlen) -> deque, Counter -> dict, exception -> text, half a pair -> ?")
PYTHON
