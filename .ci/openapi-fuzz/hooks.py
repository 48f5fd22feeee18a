"""What Schemathesis can't take from the document: ids of the present time, and rules that JSON Schema can't state.

It counts the answers to each operation into the file FUZZ_COUNTS. With FUZZ_CONTROL the document promises what the service
doesn't do, so the run must fail.
"""

import atexit
import collections
import json
import os
import re
import time

import schemathesis
from hypothesis import strategies as st
from schemathesis.specs.openapi import stateful

LEASE_ID = "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
KEY = "^(?!"
META_BYTES = 1024
TASK_TOKEN = "Holdfast-Task-Token"
SET_KEYS = 25
FILL_MAX_MS = 31 * 24 * 3_600_000
# Requests of different sequences meet at some of the keys, and most keys are free at first.
KEYS = st.integers(0, 999).map(lambda number: f"ORDER_{number}")


def lease_id(bits):
    digits = f"{int(time.time() * 1000):012x}7{bits >> 64 & 0xFFF:03x}{8 | bits >> 60 & 3:x}{bits & (1 << 60) - 1:015x}"
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


# The service refuses an id whose time is far from its own.
schemathesis.openapi.format("lease-id", st.integers(0, (1 << 76) - 1).map(lease_id))
schemathesis.openapi.format("key", KEYS)


def walk(schema):
    if isinstance(schema, dict):
        pattern = schema.get("pattern")
        if pattern == LEASE_ID:
            schema["format"] = "lease-id"
        elif isinstance(pattern, str) and pattern.startswith(KEY):
            schema["format"] = "key"
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            walk(part)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    walk(raw_schema)
    for link in raw_schema["components"]["links"].values():
        if "x-members" in link:
            link["requestBody"] = link.pop("x-members")
    if os.environ.get("FUZZ_CONTROL"):
        raw_schema["components"]["schemas"]["Lease"]["properties"]["leaseMs"]["maximum"] = 1


def rates_fit(body):
    """No rate has a burst below the cost, or one that takes over 31 days to fill."""
    cost = body.get("cost", 1)
    for rate in body["rates"]:
        count = rate["count"]
        burst = rate.get("burst", -(-count // 4))
        flow = count if "burst" in rate else count - burst + 1
        if cost > burst or rate["perMs"] * burst / flow > FILL_MAX_MS:
            return False
    return True


def target_fits(body, headers):
    """A target to wake needs the seconds for which it may sleep."""
    has_target = TASK_TOKEN in headers or (isinstance(body, dict) and "wake" in body)
    return not has_target or re.fullmatch("wait=[1-9][0-9]{0,6}", str(headers.get("Prefer"))) is not None


def permits_fit(body):
    limit, permits = body.get("limit", 1), body.get("permits", 1)
    return limit == 1 or permits <= limit


def set_fits(body):
    """A set has at most 25 different keys."""
    keys = body.get("keys", []) + [lock["key"] for lock in body.get("locks", [])]
    return len(set(keys)) <= SET_KEYS


@schemathesis.hook
def filter_case(context, case):
    """Rules that the document tells in words: the bytes of `meta`, `permits` beside `limit`, `cost` beside `rates`, `Prefer` beside `wake`,
    the different keys of a set."""
    body = case.body
    if not target_fits(body, case.headers or {}):
        return False
    if not isinstance(body, dict):
        return True
    if len(json.dumps(body.get("meta"), ensure_ascii=False).encode("utf-8", "surrogatepass")) > META_BYTES:
        return False
    try:
        return permits_fit(body) and set_fits(body) and ("rates" not in body or rates_fit(body))
    except (AttributeError, KeyError, TypeError, ZeroDivisionError):
        # It breaks the schema, so the service must refuse it.
        return True


# A sequence begins with what makes a lease. Schemathesis itself would begin with a POST, and here a PUT with an id of the
# caller's own makes it. There is no setting for this; requirements.txt fixes the version.
FIRST = {"acquire", "acquireSet", "start"}
stateful.is_likely_root_transition = lambda operation, *_: operation.definition.raw["operationId"] in FIRST

COUNTS = collections.Counter()


@schemathesis.hook
def after_call(context, case, response):
    COUNTS[f"{case.operation.definition.raw['operationId']} {response.status_code}"] += 1


@atexit.register
def write_counts():
    if path := os.environ.get("FUZZ_COUNTS"):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(COUNTS, file, indent=1, sort_keys=True)
