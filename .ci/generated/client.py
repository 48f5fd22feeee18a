"""The client that openapi-python-client generates takes a lock, a run and a limit."""

import os
import secrets
import time

from generated import Client
from generated.api.default import acquire, complete, health, release, start, take
from generated.models import AcquireRequest, Health, Lease, Problem, Rate, Replayed, Started, StartRequest, Succeeded, SucceededState, Taken, TakeRequest

client = Client(os.environ["HOLDFAST_URL"], raise_on_unexpected_status=True)


def lease_id() -> str:
    digits = f"{int(time.time() * 1000):012x}7{secrets.token_hex(2)[1:]}8{secrets.token_hex(8)[1:]}"
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


mine = lease_id()
held = acquire.sync("generated-python", mine, client=client, body=AcquireRequest(lease_ms=5000, owner="generated"))
assert isinstance(held, Lease) and held.lease_id == mine and held.owner == "generated", held
refused = acquire.sync("generated-python", lease_id(), client=client)
assert isinstance(refused, Problem) and refused.code == "locked", refused
assert release.sync_detailed("generated-python", mine, client=client).headers["lease-state"] == "released"

mine = lease_id()
run = start.sync("generated-python", mine, client=client, body=StartRequest(fingerprint="f"))
assert isinstance(run, Started) and run.attempt == 1, run
complete.sync("generated-python", mine, client=client, body=Succeeded(state=SucceededState.SUCCEEDED, result={"sent": 3}))
again = start.sync("generated-python", lease_id(), client=client, body=StartRequest(fingerprint="f"))
assert isinstance(again, Replayed) and again.result == {"sent": 3}, again

request = TakeRequest(rates=[Rate(count=1, per_ms=60_000)])
taken = take.sync("generated-python", client=client, body=request)
assert isinstance(taken, Taken) and taken.start_in_ms == 0, taken
limited = take.sync("generated-python", client=client, body=request)
assert isinstance(limited, Problem) and limited.code == "rate-limited", limited
assert isinstance(health.sync(client=client), Health)
