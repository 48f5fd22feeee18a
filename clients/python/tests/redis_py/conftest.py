"""redis-py's own tests of its locks, unchanged, against this client: `.ci/clients.sh` gets them from PyPI and lays this file beside them.

`r` stands for the client of Redis: what its tests do to a key by `set`, `get` and `ttl` another caller does at the service.
"""

import json
import os
import uuid
from typing import Any, Dict, Optional

import pytest
import redis
import redis.asyncio.lock
import redis.lock
from holdfast import AsyncClient, Client, lease_id

INSIDE = "looks inside: lock.local has no token, because each acquire has a secret of its own"
FAKE_CLOCK = "looks inside: turns a clock that only redis-py reads, and counts its pauses"
#: The tests that must fail, by name, and why.
REASONS: Dict[str, str] = {
    "test_lock": INSIDE,
    "test_lock_token": INSIDE,
    "test_lock_token_thread_local_false": INSIDE,
    "test_context_manager": INSIDE,
    "test_releasing_lock_no_longer_owned_raises_error": INSIDE,
    "test_release_cancellation_preserves_lock_state": INSIDE,
    "test_blocking_timeout": FAKE_CLOCK,
    "test_context_manager_blocking_timeout": FAKE_CLOCK,
    "test_reacquire_lock": "pexpire: nobody can make a lease shorter",
    "test_context_manager_not_raise_on_release_lock_not_owned_error": "timeout=0.1: a lease is renewed while it is held",
    "test_lock_class_argument": "lock_class: a client makes locks of its own class",
}


#: What ran, by file: written for the page of evidence.
passed: Dict[str, int] = {}
failed: Dict[str, Dict[str, int]] = {}


def pytest_runtest_logreport(report: Any) -> None:
    kit = "redis-py's test_asyncio/test_lock.py" if "test_asyncio" in report.nodeid else "redis-py's test_lock.py"
    if report.when == "call" and report.passed:
        passed[kit] = passed.get(kit, 0) + 1
    elif report.when == "call" and getattr(report, "wasxfail", ""):
        reasons = failed.setdefault(kit, {})
        reasons[report.wasxfail] = reasons.get(report.wasxfail, 0) + 1


def pytest_sessionfinish(exitstatus: int) -> None:
    """Writes what passed and what can't, if all is as it should be. The file is the same until a test changes."""
    path = os.environ.get("HOLDFAST_KITS")
    if path and exitstatus == 0:
        before = json.load(open(path)) if os.path.exists(path) else {}
        ran = {kit: {"version": redis.__version__, "passed": passed[kit], "cannot": failed.get(kit, {})} for kit in passed}
        with open(path, "w") as file:
            file.write(json.dumps({**before, **ran}, indent=2) + "\n")


def pytest_collection_modifyitems(items: Any) -> None:
    for item in items:
        reason = REASONS.get(item.name)
        if reason:
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))


class Key:
    """A name of Redis: a key of its own in each test."""

    def __init__(self) -> None:
        self.client = Client()
        self.suffix = uuid.uuid4().hex

    def name(self, name: str) -> str:
        return f"{name}_{self.suffix}"

    def holder(self, name: str) -> Optional[Dict[str, Any]]:
        holders = self.client.call("GET", f"/v1/locks/{self.name(name)}")[1]["holders"]
        return holders[0] if holders else None

    def set(self, name: str, value: str) -> None:
        """Another caller has the key from now on."""
        holder = self.holder(name)
        if holder:
            body = {"reason": "redis-py's test", "fencingToken": holder["fencingToken"], "drainMs": 0}
            self.client.call("POST", f"/v1/locks/{self.name(name)}/break", body)
        self.client.call("PUT", f"/v1/locks/{self.name(name)}/leases/{lease_id()}", {"owner": value})

    def get(self, name: str) -> Optional[bytes]:
        holder = self.holder(name)
        return holder["owner"].encode() if holder else None

    def pttl(self, name: str) -> int:
        holder = self.holder(name)
        return int(holder["remainingMs"]) if holder else -2

    def ttl(self, name: str) -> float:
        return self.pttl(name) / 1000

    def lock(self, name: str, timeout: Optional[float] = None, **options: Any) -> Any:
        return self.lock_of(Client(), name, timeout, **options)

    def lock_of(self, client: Any, name: str, timeout: Optional[float], lock_class: Any, **options: Any) -> Any:
        if lock_class not in (redis.lock.Lock, redis.asyncio.lock.Lock):
            options["lock_class"] = lock_class
        return client.lock(self.name(name), timeout=timeout, **options)


class AsyncKey:
    """The same for asyncio."""

    def __init__(self) -> None:
        self.key = Key()

    def lock(self, name: str, timeout: Optional[float] = None, **options: Any) -> Any:
        return self.key.lock_of(AsyncClient(), name, timeout, **options)

    def __getattr__(self, method: str) -> Any:
        async def call(*args: Any) -> Any:
            return getattr(self.key, method)(*args)

        return call

    async def flushall(self) -> None: ...


@pytest.fixture()
def r(request: Any) -> Any:
    return AsyncKey() if f"{os.sep}test_asyncio{os.sep}" in str(request.path) else Key()


@pytest.fixture()
def create_redis() -> Any:
    async def create(**_: Any) -> AsyncKey:
        return AsyncKey()

    return create


def _get_client(*_: Any, **__: Any) -> Key:
    return Key()
