"""A client of holdfast's HTTP API in one file: copy it. Python 3.9 or newer; botocore only to sign requests on AWS.

    locks = Client()  # reads HOLDFAST_URL
    with locks.lock("ORDER_1231", timeout=30) as lock:
        ship(1231, lock.fencing_token)

`Lock` has the interface of redis-py's. Two things are different: a lease is renewed while the lock is held, so `timeout` is the time
until others take over from a process that died; and a lock that was lost says so (`lost`, `owned()`, and `release()` raises).

Every request has a limit of time and is sent again under the same lease id, so an answer that got lost is no second lock. A take from a
limit has no id: sent twice it is charged twice, so fewer are granted than may be, and never more.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import secrets
import socket
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Sequence, TypeVar

try:  # The very exceptions of redis-py, where it is installed: what catches them goes on to do so.
    from redis.exceptions import LockError, LockNotOwnedError
except ImportError:

    class LockError(ValueError):  # type: ignore[no-redef]
        """A lock that could not be acquired, released or extended."""

    class LockNotOwnedError(LockError):  # type: ignore[no-redef]
        """A lock that is held no more: its lease ended, or an operator broke it."""


__all__ = ["Client", "Lock", "Run", "Rate", "Problem", "RunFailed", "LockError", "LockNotOwnedError", "key"]

T = TypeVar("T")
#: A lease is given up this long before it ends: clocks may run at rates that differ by this much.
CLOCK_RATE = 0.002
#: The longest that the service holds a request open, in seconds; and the longest pause between two tries.
HOLD_SEC, PAUSE_SEC = 5, 1.0
FOREVER_SEC = 10 * 365 * 86_400.0


class Problem(Exception):
    """An answer of the service that is no success: `code`, `status`, `definite` (it certainly did not happen), `retry` and `retry_after`."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(f"{body.get('code', status)}: {body.get('detail') or body.get('title') or 'no answer of the service'}")
        self.status = status
        self.body = body
        self.code = str(body.get("code", ""))
        # An answer that a gateway made has no body: below 500 nothing happened.
        self.definite = bool(body.get("definite", 400 <= status < 500))
        self.retry = str(body.get("retry", "same" if status >= 500 or status == 0 else "never"))
        self.retry_after = int(body.get("retryAfterMs", 0)) / 1000
        self.holders: Sequence[Mapping[str, Any]] = body.get("holders", [])


class RunFailed(Exception):
    """A run that ended for good with an error, now or earlier: `error` is what was recorded."""

    def __init__(self, name: str, error: Any) -> None:
        super().__init__(f"run {name}: {error.get('message', error) if isinstance(error, dict) else error}")
        self.error = error


def key(*parts: str | int) -> str:
    """Builds a key of parts, as the SDK's `key()` does: `key("ORDER", 1231)` is `ORDER_1231`, and no two lists of parts share a key."""

    def encoded(part: str | int) -> str:
        if isinstance(part, bool) or not isinstance(part, (str, int)) or part == "":
            raise ValueError(f"key: {part!r} given; a part is a number or a text that is not empty")
        kept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:-"
        return "".join(chr(byte) if chr(byte) in kept else f"~{byte:02X}" for byte in str(part).encode())

    whole = "_".join(encoded(part) for part in parts)
    if not whole:
        raise ValueError("key: needs at least one part")
    if whole in (".", ".."):
        return whole.replace(".", "~2E")
    return whole if len(whole) < 200 else f"{whole[:135]}~{hashlib.sha256(whole.encode()).hexdigest()}"


def lease_id() -> str:
    """Returns a new UUIDv7 of the operating system's random bits. It proves the hold: never log it."""
    ms, rest = f"{time.time_ns() // 1_000_000:012x}", secrets.token_hex(9)
    return f"{ms[:8]}-{ms[8:]}-7{rest[:3]}-8{rest[3:6]}-{rest[6:18]}"


@dataclass(frozen=True)
class Rate:
    """At most `count` in each `per` seconds, of which up to `burst` (by default `count`) at once."""

    count: int
    per: float
    burst: int | None = None


class Client:
    """Calls one service. Threads may share it. It keeps no connection open, so a fork is safe."""

    def __init__(
        self,
        url: str | None = None,
        *,
        sign: bool = False,
        token: str | Callable[[], str] | None = None,
        owner: str | None = None,
        timeout: float = 10,
    ) -> None:
        """`url` is HOLDFAST_URL by default. On AWS either `sign` (signature version 4, by botocore) or `token` (a JWT, or what returns one).
        `timeout`: the limit of each request in seconds, and of sending it again without an answer."""
        url = url or os.environ.get("HOLDFAST_URL")
        if not url:
            raise ValueError("url: name the service, or set HOLDFAST_URL")
        self.url = url.rstrip("/")
        self.owner = owner or f"{socket.gethostname()}:{os.getpid()}"[:128]
        self.timeout = timeout
        self._token = token
        self._sign = _signer(self.url) if sign else None

    def lock(
        self,
        name: str,
        timeout: float = 30,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        *,
        priority: int = 0,
    ) -> Lock:
        """Returns the lock of this key, not acquired yet. The parameters are those of redis-py's `lock()`; `timeout` is the lease's length
        in seconds (1 to 86,400), and the service's queue takes the place of `sleep`."""
        return Lock(self, name, timeout, sleep, blocking, blocking_timeout, priority=priority)

    def run_once(
        self,
        name: str,
        work: Callable[[Run], T],
        *,
        payload: Any = None,
        timeout: float = 30,
        blocking_timeout: float = 45,
        keep_result: float = 86_400,
        max_attempts: int = 5,
        is_final: Callable[[BaseException], bool] = lambda error: False,
    ) -> T:
        """Does the work once per key, and returns its result to every caller, now or later. The result is JSON.

        An error of the work lets the next caller start again; one that `is_final` is recorded, and every caller gets `RunFailed`.
        Raises `Problem`: `run-in-progress` after `blocking_timeout`, `fingerprint-mismatch` for another payload, `attempts-exhausted`;
        and `LockNotOwnedError` if somebody took the run over meanwhile: then nothing of this call was recorded.
        """
        body = {"leaseMs": _ms(timeout), "keepResultMs": _ms(keep_result), "maxAttempts": max_attempts, "owner": self.owner}
        if payload is not None:
            text = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            body["fingerprint"] = hashlib.sha256(text.encode()).hexdigest()
        hold = _Hold(self, "runs", name)
        end = time.monotonic() + blocking_timeout
        while True:
            try:
                answer = hold.acquire(body, end)
                break
            except Problem as problem:
                if problem.code != "run-in-progress" or time.monotonic() >= end:
                    raise
                time.sleep(_pause(problem.retry_after, end))
                hold = _Hold(self, "runs", name)
        if answer["state"] == "succeeded":
            return answer.get("result")  # type: ignore[return-value]
        if answer["state"] == "failed":
            raise RunFailed(name, answer.get("error"))
        hold.keep()
        run = Run(name, answer["attempt"], answer["takeover"], answer.get("checkpoint"), answer["fencingToken"], hold)
        try:
            result = work(run)
            outcome: Mapping[str, Any] = {"state": "succeeded", "result": json.loads(json.dumps(result, allow_nan=False))}
        except BaseException as error:
            final = is_final(error)
            described = {"name": type(error).__name__, "message": str(error)[:800]}
            hold.end("PUT", "/outcome", {"state": "failed", "error": described, "retryable": not final})
            if final:
                raise RunFailed(name, described) from error
            raise
        hold.end("PUT", "/outcome", outcome)
        return result

    def take(self, name: str, rates: Sequence[Rate], *, cost: int = 1, blocking_timeout: float = 0) -> float:
        """Takes from a limit, and returns the seconds waited. Raises `Problem` with the code `rate-limited` and the exact `retry_after` if it
        has no room within `blocking_timeout`."""
        listed = [{"count": r.count, "perMs": _ms(r.per), **({} if r.burst is None else {"burst": r.burst})} for r in rates]
        body: dict[str, Any] = {"rates": listed, "cost": cost}
        if blocking_timeout > 0:
            body["waitMs"] = _ms(blocking_timeout)
        answer = self.call("POST", f"/v1/limits/{name}/takes", body)[1]
        start: float = answer.get("startInMs", 0) / 1000
        time.sleep(start)
        return start

    def call(
        self, method: str, path: str, body: Any = None, *, wait: int = 0, timeout: float | None = None, again: bool = True
    ) -> tuple[int, dict[str, Any]]:
        """Sends a request, and sends it again while there is no definite answer, for `timeout` seconds. Returns status and body.
        Raises `Problem`; with status 0 if there was no answer."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        tries = 0
        while True:
            try:
                return self._send(method, path, body, wait, max(0.1, end - time.monotonic()))
            except Problem as problem:
                pause = max(problem.retry_after, min(PAUSE_SEC, 0.05 * 2**tries) * random.uniform(0.5, 1))
                if not again or problem.retry != "same" or time.monotonic() + pause >= end:
                    raise
            tries += 1
            time.sleep(pause)

    def _send(self, method: str, path: str, body: Any, wait: int, timeout: float) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"content-type": "application/json"}
        if wait > 0:
            headers["prefer"] = f"wait={wait}"
        if self._token:
            headers["authorization"] = f"Bearer {self._token() if callable(self._token) else self._token}"
        if self._sign:
            headers = self._sign(method, self.url + path, data, headers)
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            # The service may hold it open for as long as it was asked to.
            with urllib.request.urlopen(request, timeout=min(self.timeout, timeout) + wait) as answer:
                text = answer.read(2_000_000)
                parsed = json.loads(text) if text else {}
                return answer.status, {**parsed, "leaseState": answer.headers.get("lease-state", "")}
        except urllib.error.HTTPError as error:
            with error:
                raise Problem(error.code, _json(error.read(2_000_000))) from None
        except (OSError, ValueError) as error:
            raise Problem(0, {"code": "unavailable", "detail": f"{method} {self.url}: {error}", "retry": "same", "definite": False}) from error


class _Hold:
    """One lease, its deadline on this machine's clock, and the thread that renews it."""

    def __init__(self, client: Client, kind: str, name: str) -> None:
        self.client = client
        self.path = f"/v1/{kind}/{name}/leases/{lease_id()}"
        self.length = 0
        self.fencing_token = 0
        self.lost = threading.Event()
        self._until = 0.0
        self._renew_after = 0.0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self, body: dict[str, Any], end: float) -> dict[str, Any]:
        """Waits in the queue until `end`, and cancels the request if it ends without the lease. Raises `Problem`."""
        self.length = body["leaseMs"]
        try:
            while True:
                left = end - time.monotonic()
                sent = time.monotonic()
                # A wait of 0 asks once and leaves no place in the queue.
                status, answer = self.client.call("PUT", self.path, body, wait=min(HOLD_SEC, int(left)) if left >= 1 else 0)
                if status != 202:
                    self._read(answer, sent)
                    return answer
                if left <= 0:
                    raise Problem(423, {"code": "locked", "detail": "still waiting", "definite": True, "retry": "later"})
                time.sleep(_pause(answer.get("retryAfterMs", 0) / 1000, end))
        except BaseException as error:
            # A refusal left nothing behind, but a place in the queue that was asked for before it.
            if not isinstance(error, Problem) or error.code not in ("run-in-progress", "fingerprint-mismatch", "attempts-exhausted"):
                self.cancel()
            raise

    def _read(self, lease: Mapping[str, Any], sent: float) -> None:
        if "remainingMs" in lease:
            self.fencing_token = lease["fencingToken"]
            # Counted from the sending, so the lease is never believed to be longer than the service says.
            self._until = sent + lease["remainingMs"] / 1000 * (1 - CLOCK_RATE)
            self._renew_after = lease["renewAfterMs"] / 1000

    def keep(self) -> None:
        """Starts to renew the lease, until it ends or is lost."""
        self._thread = threading.Thread(target=self._beat, name="holdfast-heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(min(self._renew_after, max(0, self._until - time.monotonic()))):
            if not self.held():
                self.lost.set()
                return
            try:
                self.renew(self.length)
            except Problem as problem:
                if problem.status in (403, 404, 410, 422):
                    self._until = 0
                self._renew_after = min(self._renew_after, 1)

    def renew(self, length: int) -> None:
        """Makes the lease `length` ms long from now, unless it is longer. Raises `Problem`."""
        sent = time.monotonic()
        # No answer is waited for past the end of the lease.
        left = max(0.1, self._until - sent)
        self._read(self.client.call("POST", f"{self.path}/renew", {"leaseMs": length}, timeout=left, again=False)[1], sent)

    def held(self) -> bool:
        """True if the lease is held for certain: computed, without a request."""
        return not self._ended.is_set() and not self.lost.is_set() and time.monotonic() < self._until

    def remaining(self) -> float:
        return max(0.0, self._until - time.monotonic()) if self.held() else 0.0

    def end(self, method: str, suffix: str, body: Any = None) -> str:
        """Ends the lease and its thread. Raises `LockNotOwnedError` if it was lost."""
        self._ended.set()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(self.client.timeout)
        try:
            state = self.client.call(method, self.path + suffix, body)[1]["leaseState"]
        except Problem as problem:
            if problem.code == "lease-lost":
                raise LockNotOwnedError(f"the lease was lost: {problem}") from problem
            raise
        if state in ("lost", "unknown"):
            raise LockNotOwnedError("the lease was lost: another may have had it since, so undo what it guarded")
        return str(state)

    def cancel(self) -> None:
        """Cancels a request of unknown outcome, or leaves the queue. Without an answer the lease ends by itself."""
        try:
            self.client.call("DELETE", self.path, again=False)
        except Problem:
            pass


class Lock:
    """A lock with the interface of redis-py's `Lock`. One object holds once at a time; each `acquire` is a new lease."""

    def __init__(
        self,
        client: Client,
        name: str,
        timeout: float = 30,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        *,
        priority: int = 0,
    ) -> None:
        if not 1 <= timeout <= 86_400:
            raise LockError(f"timeout: {timeout} given; a lease is 1 to 86,400 seconds long, and is renewed while it is held")
        self.client = client
        self.name = name
        self.timeout = timeout
        self.sleep = sleep
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.priority = priority
        self._hold: _Hold | None = None

    def acquire(
        self, sleep: float | None = None, blocking: bool | None = None, blocking_timeout: float | None = None, token: None = None
    ) -> bool:
        """Acquires the lock; False if it is held after `blocking_timeout` seconds (None: no end), or at once if not `blocking`.
        Raises `Problem` if the service can't be reached or refuses."""
        if token is not None:
            raise LockError("token: can't be given; each acquire has a secret of its own")
        if self._hold:
            raise LockError("Cannot acquire a lock that is already held by this object")
        blocking = self.blocking if blocking is None else blocking
        if blocking_timeout is None:
            blocking_timeout = self.blocking_timeout
        if not blocking:
            blocking_timeout = 0
        end = time.monotonic() + (FOREVER_SEC if blocking_timeout is None else blocking_timeout)
        hold = _Hold(self.client, "locks", self.name)
        body = {"leaseMs": _ms(self.timeout), "owner": self.client.owner, "priority": self.priority}
        try:
            hold.acquire(body, end)
        except Problem as problem:
            if problem.code in ("locked", "run-in-progress"):
                return False
            raise
        hold.keep()
        self._hold = hold
        return True

    def __enter__(self) -> Lock:
        if self.acquire():
            return self
        raise LockError("Unable to acquire lock within the time specified")

    def __exit__(self, *_error: object) -> None:
        self.release()

    def release(self) -> None:
        """Releases the lock. Raises `LockError` if it was never acquired, and `LockNotOwnedError` if it was lost meanwhile."""
        hold, self._hold = self._hold, None
        if hold is None:
            raise LockError("Cannot release an unlocked lock")
        hold.end("DELETE", "")

    def extend(self, additional_time: float, replace_ttl: bool = False) -> bool:
        """Makes the lease longer by `additional_time` seconds, or with `replace_ttl` that long from now. The lock renews itself, so this is
        for a time in which nothing can be sent. A lease never gets shorter."""
        hold = self._owned("Cannot extend an unlocked lock", "Cannot extend a lock that's no longer owned")
        length = _ms(additional_time + (0 if replace_ttl else hold.remaining()))
        try:
            hold.renew(max(1000, length))
        except Problem as problem:
            if problem.code == "lease-lost":
                raise LockNotOwnedError("Cannot extend a lock that's no longer owned") from problem
            raise
        return True

    def reacquire(self) -> bool:
        """Makes the lease `timeout` seconds long from now."""
        return self.extend(self.timeout, replace_ttl=True)

    def owned(self) -> bool:
        """True if this object holds the lock for certain. Ask before each side effect: it costs no request."""
        return self._hold is not None and self._hold.held()

    def locked(self) -> bool:
        """True if anybody holds the lock."""
        return bool(self.client.call("GET", f"/v1/locks/{self.name}")[1]["holders"])

    @property
    def lost(self) -> threading.Event:
        """Is set when the lease is lost while it is held: wait for it, or look at it between two steps."""
        return self._owned("Cannot watch an unlocked lock").lost

    @property
    def fencing_token(self) -> int:
        """Increases with every grant of the key. Give it to the resource that you write to, which refuses a smaller one."""
        return self._owned("An unlocked lock has no token").fencing_token

    def _owned(self, never: str, no_more: str | None = None) -> _Hold:
        if self._hold is None:
            raise LockError(never)
        if no_more and not self._hold.held():
            raise LockNotOwnedError(no_more)
        return self._hold


@dataclass
class Run:
    """One attempt at the work of a key, as its function sees it."""

    #: The same in all attempts: pass it to every API that takes an idempotency key.
    idempotency_key: str
    attempt: int
    #: True if the attempt before never said how it ended: its effects are unknown.
    takeover: bool
    checkpoint: Any
    fencing_token: int
    _hold: _Hold = field(repr=False)

    def owned(self) -> bool:
        """True if this attempt is the only one for certain. Ask before each side effect."""
        return self._hold.held()

    @property
    def lost(self) -> threading.Event:
        return self._hold.lost

    def save_checkpoint(self, value: Any) -> None:
        """Saves up to 8 KB of JSON for the attempt that takes over."""
        self._hold.client.call("POST", f"{self._hold.path}/renew", {"checkpoint": value})
        self.checkpoint = value


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _pause(seconds: float, end: float) -> float:
    """Returns a pause that never goes past the end of a wait."""
    return max(0.0, min(max(seconds, 0.02), PAUSE_SEC, end - time.monotonic()))


def _json(text: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(text)
        return parsed if isinstance(parsed, dict) else {}
    except ValueError:
        return {}


def _signer(url: str) -> Callable[[str, str, bytes | None, dict[str, str]], dict[str, str]]:
    """Returns a function that signs for API Gateway, or for a function URL, with the credentials that botocore finds."""
    import botocore.session
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    session = botocore.session.get_session()
    parts = url.split("//")[-1].split("/")[0].split(".")
    # These name their Region: {id}.execute-api.{region}.amazonaws.com and {id}.lambda-url.{region}.on.aws
    service = "lambda" if parts[1:2] == ["lambda-url"] else "execute-api"
    region = parts[2] if parts[1:2] in (["execute-api"], ["lambda-url"]) else session.get_config_variable("region")
    credentials = session.get_credentials()
    if not region or credentials is None:
        raise ValueError("sign: there is no Region, or there are no credentials")

    def sign(method: str, address: str, data: bytes | None, headers: dict[str, str]) -> dict[str, str]:
        request = AWSRequest(method=method, url=address, data=data, headers=headers)
        SigV4Auth(credentials.get_frozen_credentials(), service, region).add_auth(request)
        return dict(request.headers.items())

    return sign
