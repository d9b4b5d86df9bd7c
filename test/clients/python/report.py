"""What a driver tells the test: a line of JSON for each thing that was tried."""

import json
import sys
import time
import traceback
import urllib.request

GIVEN = json.loads(sys.argv[1])
ORIGIN, SLOW, BUSY = GIVEN["origin"], GIVEN["slow"], GIVEN["busy"]

NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": NUMBERS}}
TOO_LONG = "word " * 5_000


def works(attempt):
    """Tries the function when it is defined, under its name; what it raises is told and does not end the others."""
    line = {"capability": attempt.__name__}
    try:
        attempt()
    except BaseException:
        line["failure"] = traceback.format_exc()
    print(json.dumps(line), flush=True)


def raised_by(attempt):
    try:
        attempt()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def equal(found, wanted):
    assert found == wanted, f"{found!r} is not {wanted!r}"


def freed():
    """Waits until the server works for nobody: the client that left has given its permit back."""
    while json.load(urllib.request.urlopen(f"{SLOW}/taken"))["taken"] != 0:
        time.sleep(0.02)
