"""A client of holdfast's HTTP API in one file: copy it. Python 3.9 or newer; botocore only to sign requests on AWS.

    locks = Client()  # reads HOLDFAST_URL
    with locks.lock("ORDER_1231", timeout=30) as lock:
        ship(1231, lock.fencing_token)

`Lock` has the interface of redis-py's. Two things are different: a lease is renewed while the lock is held, so `timeout` is the time
until others take over from a process that died; and a lock that was lost says so (`lost`, `owned()`, and `release()` raises).

Every request has a limit of time and is sent again under the same lease id, so an answer that got lost is no second lock. A take from a
limit has no id: sent twice it is charged twice, so fewer are granted than may be, and never more.

`AsyncClient` is the same for asyncio: `async with AsyncClient().lock("ORDER_1231") as lock`. Both carry out the same steps: a generator
yields what waits (a request, a pause, the caller's work), and either a thread waits for it or a task does.
"""

from __future__ import annotations

import asyncio
import base64
import collections.abc
import concurrent.futures
import datetime
import functools
import hashlib
import http.client
import inspect
import io
import itertools
import json
import math
import os
import random
import re
import secrets
import socket
import threading
import time
import unicodedata
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, ClassVar, Dict, Generator, Generic, Iterable, Mapping, Optional, Sequence, Tuple, TypeVar, Union

try:  # The very exceptions of redis-py, where it is installed: what catches them goes on to do so.
    from redis.exceptions import LockError, LockNotOwnedError  # type: ignore[import-not-found, unused-ignore]
except ImportError:

    class LockError(ValueError):  # type: ignore[no-redef, unused-ignore]
        """A lock that could not be acquired, released or extended."""

    class LockNotOwnedError(LockError):  # type: ignore[no-redef, misc, unused-ignore]
        """A lock that is held no more: its lease ended, or an operator broke it."""


__all__ = [
    *("Client", "Lock", "Run", "AsyncClient", "AsyncLock", "AsyncRun", "Rate"),
    *("Problem", "RunFailed", "LockError", "LockNotOwnedError", "fingerprint", "key"),
]

T = TypeVar("T")
#: What a call does, one step after another: a generator yields each `_Step`, and gets what came of it.
Steps = Generator[Any, Any, T]
#: The class of a client's locks.
L = TypeVar("L")
#: A lease is given up this long before it ends: clocks may run at rates that differ by this much.
CLOCK_RATE = 0.002
#: The longest that the service holds a request open, in seconds; and the longest pause between two tries.
HOLD_SEC, PAUSE_SEC = 5, 1.0
FOREVER_SEC = 10 * 365 * 86_400.0
#: The largest result, in bytes, and the deepest value.
RESULT_BYTES, DEPTH = 262_144, 100
#: The most keys of a set, and the longest time for which one keeps its turns at some keys while it waits at another.
SET_KEYS, KEPT_SEC = 25, 2.0
#: The longest time for which a request of unknown outcome is cancelled, in seconds.
CANCEL_SEC = 2.0
#: How the keys of a set may end, the worst first: it decides for the whole set.
WORST = ("lost", "unknown", "never", "expired", "transferred", "released")
#: The advice for a run that was tried too often: most of these had an outcome, such as a declined card, and told it as a failed attempt.
EXHAUSTED = (
    "it was begun as often as max_attempts={} allows, and no attempt succeeded. Allow more of them, or reset it (holdfast reset KEY). "
    "For an error that no retry changes, is_final returns True: it is recorded, and every caller gets RunFailed"
)
#: The payload of a run that has none; None is one.
NO_PAYLOAD: Any = object()
NAME = re.compile(r"[A-Za-z0-9._:~-]{1,200}", re.ASCII)
LEASE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
#: The refusals that a later time or a new id can resolve.
WAITABLE = ("locked", "queue-full", "key-full", "lease-over", "lease-id-time", "run-in-progress")


class Problem(Exception):
    """An answer of the service that is no success: `code`, `status`, `definite` (it certainly did not happen), `retry` and `retry_after`.
    `name` is the key that was asked for, or the keys of a set; empty for another request."""

    def __init__(self, status: int, body: Mapping[str, Any], *, by_service: bool = False) -> None:
        super().__init__(f"{body.get('code', status)}: {body.get('detail') or body.get('title') or 'no answer of the service'}")
        self.name = ""
        self.status = status
        self.body = body
        self.code = str(body.get("code", ""))
        #: False if nobody answered, or only a gateway did.
        self.by_service = by_service
        self.definite = body.get("definite") is True
        self.retry = str(body.get("retry", "same"))
        self.retry_after = _count(body.get("retryAfterMs")) / 1000
        holders = body.get("holders")
        self.holders: Sequence[Mapping[str, Any]] = holders if isinstance(holders, list) else []

    def __str__(self) -> str:
        return f"{self.name}: {self.args[0]}" if self.name else str(self.args[0])

    @property
    def again(self) -> bool:
        """True if the same request may be answered otherwise."""
        return self.retry == "same" or self.code in ("throttled", "clock-skew")


class Unkeepable(TypeError):
    """A value that JSON can't represent."""


class RunFailed(Exception):
    """A run that ended for good with an error, now or earlier: `error` is what was recorded."""

    def __init__(self, name: str, error: Any) -> None:
        super().__init__(f"run {name}: {error.get('message', error) if isinstance(error, dict) else error}")
        self.error = error


def key(*parts: Union[str, int, float]) -> str:
    """Builds a key of parts, as the SDK's `key()` does: `key("ORDER", 1231)` is `ORDER_1231`, and no two lists of parts share a key,
    but for the forms of one text in Unicode: a part is taken in its normal form C."""

    def encoded(part: Union[str, int, float]) -> str:
        if isinstance(part, bool) or not isinstance(part, (str, int, float)) or part == "":
            raise ValueError(f"key: {part!r} given; a part is a number or a text that is not empty")
        if isinstance(part, float) and not math.isfinite(part):
            raise ValueError(f"key: {part!r} given; a part is a number or a text that is not empty")
        text = part if isinstance(part, str) else _number(part) if isinstance(part, float) else str(part)
        kept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:-"
        try:
            return "".join(chr(byte) if chr(byte) in kept else f"~{byte:02X}" for byte in unicodedata.normalize("NFC", text).encode())
        except UnicodeEncodeError:
            raise ValueError("key: a part has half a surrogate pair") from None

    whole = "_".join(encoded(part) for part in parts)
    if not whole:
        raise ValueError("key: needs at least one part")
    if whole in (".", ".."):
        return whole.replace(".", "~2E")
    return whole if len(whole) < 200 else f"{whole[:135]}~{hashlib.sha256(whole.encode()).hexdigest()}"


def fingerprint(payload: Any) -> str:
    """Returns the fingerprint of a run's payload, the same as the SDK's. Raises `TypeError` naming what JSON can't represent."""
    text = _text(_to_json(payload, "payload"))
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def _to_json(value: Any, path: str, depth: int = DEPTH) -> Any:
    """Returns a value as JSON: a number that JSON lacks and a datetime have the SDK's tags, a tuple is a list, and a key is a text."""
    if depth < 0:
        raise Unkeepable(f"{path}: is nested more than {DEPTH} deep, or in itself")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        # A number, if it has the digits that JavaScript would write.
        is_number = abs(value) < 2**53 or (abs(value) < 10**21 and _number(float(value)) == str(int(value)))
        return int(value) if is_number else {"~type": "bigint", "value": str(int(value))}
    if isinstance(value, float):
        if math.isnan(value):
            return {"~type": "number", "value": "NaN"}
        if math.isinf(value):
            return {"~type": "number", "value": "Infinity" if value > 0 else "-Infinity"}
        return {"~type": "number", "value": "-0"} if value == 0 and math.copysign(1, value) < 0 else float(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        utc = value.astimezone(datetime.timezone.utc)
        return {"~type": "date", "value": f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"}
    if isinstance(value, (list, tuple)):
        return [_to_json(item, f"{path}[{at}]", depth - 1) for at, item in enumerate(value)]
    if isinstance(value, dict):
        members: Dict[str, Any] = {}
        for name, member in value.items():
            if not isinstance(name, (str, int)) or isinstance(name, bool):
                raise Unkeepable(f"{path}: has a key of {type(name).__name__}, which JSON can't have")
            if str(name) in members:
                raise Unkeepable(f"{path}: has the key {name!r} twice as text")
            members[str(name)] = _to_json(member, f"{path}.{name}", depth - 1)
        return {"~type": "object", "value": members} if "~type" in members else members
    raise Unkeepable(f"{path}: {type(value).__name__} can't be kept as JSON")


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag, inner = value.get("~type"), value.get("value")
    if tag == "undefined":
        return None
    if tag in ("number", "bigint") and isinstance(inner, str):
        return float(inner.replace("Infinity", "inf")) if tag == "number" else int(inner)
    if tag == "date":
        return datetime.datetime.fromisoformat(inner.replace("Z", "+00:00")) if isinstance(inner, str) else None
    members = inner if tag == "object" and isinstance(inner, dict) else value
    return {name: _from_json(member) for name, member in members.items()}


def _number(value: float) -> str:
    """Returns a number as JavaScript writes it."""
    if value == 0:
        return "0"
    text = repr(abs(value))
    mantissa, _, power = text.partition("e")
    whole, _, part = mantissa.partition(".")
    part = "" if part == "0" else part
    digits = (whole + part).lstrip("0")
    # The place of the point, counted from the first digit.
    point = int(power or 0) + (len(whole) if whole != "0" else len(digits) - len(part))
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    if 0 < point <= 21:
        return sign + (digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    exponent = point - 1
    return f"{sign}{digits[0]}{'.' + digits[1:] if len(digits) > 1 else ''}e{'+' if exponent > 0 else '-'}{abs(exponent)}"


def _place(name: str) -> Tuple[int, int, bytes]:
    """Returns the place of a member as JavaScript orders them: indices first, by their number, then texts by their UTF-16."""
    is_index = re.fullmatch(r"0|[1-9]\d{0,9}", name, re.ASCII) is not None and int(name) < 2**32 - 1
    return (0, int(name), b"") if is_index else (1, 0, name.encode("utf-16-be", "surrogatepass"))


def _text(value: Any) -> str:
    """Returns canonical JSON: the same text for the same value, in every language."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(name)}:{_text(value[name])}" for name in sorted(value, key=_place)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def _count(value: Any) -> int:
    """Returns a count of an answer; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _name(name: str) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in (".", ".."):
        raise LockError(f"name: {name!r} given; it is 1 to 200 characters of A-Z a-z 0-9 . _ : ~ -, as key() makes them")
    return name


def lease_id(offset_ms: int = 0, above_ms: int = 0) -> str:
    """Returns a new UUIDv7 of the operating system's random bits. It proves the hold: never log it."""
    ms, rest = f"{max(int(time.time() * 1000) + offset_ms, above_ms + 1):012x}", secrets.token_hex(9)
    return f"{ms[:8]}-{ms[8:]}-7{rest[:3]}-8{rest[3:6]}-{rest[6:18]}"


@dataclass(frozen=True)
class Rate:
    """At most `count` start in any `per` seconds, a quarter of them at once. With a `burst` it is a bucket of that size, to which `count` flow
    in each `per`: at most `burst` at once, and at most `burst + count - 1` in any `per`."""

    count: int
    per: float
    burst: int | None = None


class _Step:
    """What a call waits for. A thread does it at once; a task does it without holding up the others of its loop."""

    def do(self) -> Any:
        raise NotImplementedError

    async def do_in_task(self) -> Any:
        # A thread of its own: in a pool that others fill, a heartbeat would wait for its turn.
        return await _in_thread(self.do)


@dataclass(frozen=True)
class _Request(_Step):
    """Sends a request once."""

    send: Callable[[], Any]

    def do(self) -> Any:
        return self.send()


@dataclass(frozen=True)
class _Pause(_Step):
    """Waits for so long, or until the event is set: then it is True."""

    seconds: float
    until: Any = None

    def do(self) -> bool:
        if self.until:
            return bool(self.until.wait(self.seconds))
        time.sleep(self.seconds)
        return False

    async def do_in_task(self) -> bool:
        if not self.until:
            await asyncio.sleep(self.seconds)
            return False
        try:
            await asyncio.wait_for(self.until.wait(), self.seconds)
        except asyncio.TimeoutError:
            return False
        return True


#: The failures in a row after which a door rests, and for how long, in seconds. It is asked again with the next request after that.
DOOR_FAILURES, DOOR_RESTS_SEC = 3, 60.0
#: The time, in seconds, after which a door is asked anew whose table didn't list the first door.
REFUSED_SEC = 10.0


#: Signs a request: takes its method, its address, its body and its headers, and returns the headers to send.
Sign = Callable[[str, str, Optional[bytes], Dict[str, str]], Dict[str, str]]


@dataclass(eq=False)
class _Door:
    """A service of the table, and what this client knows of it."""

    url: str
    sign: Optional[Sign]
    #: True if it is known to lead to the table of the first door.
    is_proven: bool
    failures: int = 0
    rests_until: float = 0.0
    refused_until: float = 0.0

    @property
    def rests(self) -> bool:
        return time.monotonic() < self.rests_until

    @property
    def may_be_asked(self) -> bool:
        return not self.rests and (self.is_proven or time.monotonic() >= self.refused_until)

    def fail(self) -> None:
        self.failures += 1
        if self.failures >= DOOR_FAILURES:
            # So the next failure lets it rest again.
            self.failures = DOOR_FAILURES - 1
            self.rests_until = time.monotonic() + DOOR_RESTS_SEC * random.uniform(0.8, 1.2)

    def refuse(self) -> None:
        self.refused_until = time.monotonic() + REFUSED_SEC


@dataclass(frozen=True)
class _Work(_Step):
    """Does the work of a run."""

    work: Callable[[Any], Any]
    run: Any

    def do(self) -> Any:
        return _done(self.work(self.run))

    async def do_in_task(self) -> Any:
        result = self.work(self.run)
        return _done(await result if inspect.isawaitable(result) else result)


#: The functions whose work isn't done when they return.
UNFINISHED: Mapping[str, Callable[[Any], bool]] = {
    "generator function": inspect.isgeneratorfunction,
    "async generator function": inspect.isasyncgenfunction,
    "coroutine function": inspect.iscoroutinefunction,
}
#: What does its work later than the function that returns it.
LATER = (collections.abc.Generator, collections.abc.AsyncGenerator, collections.abc.Awaitable, map, filter, concurrent.futures.Future)


def _done(result: Any) -> Any:
    """Returns the result of work. Raises `TypeError` if it would do the work after the call is over."""
    if isinstance(result, LATER):
        kind = type(result).__name__
        raise TypeError(f"work: returned a {kind}, which would do the work after this call is over; consume it in the work, and return its values")
    return result


def _check_function(field: str, function: Any, *, is_awaited: bool = False) -> None:
    """Raises `TypeError` unless a call of it does what it is for: a call of a generator function does nothing yet."""
    rule = f"it is a function that is done when it {'returns or was awaited' if is_awaited else 'returns'}"
    if not callable(function):
        raise TypeError(f"{field}: {function!r} given; {rule}")
    for kind, is_kind in UNFINISHED.items():
        # An object that is called has its function in its class.
        if (is_kind(function) or is_kind(type(function).__call__)) and not (is_awaited and kind == "coroutine function"):
            raise TypeError(f"{field}: the {kind} {getattr(function, '__qualname__', function)} given; {rule}")


def _carry_out(steps: Steps[T]) -> T:
    """Carries steps out in this thread."""
    try:
        step = next(steps)
        while True:
            try:
                outcome = step.do()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        # A signal may have interrupted this between two steps, which are then told here.
        steps.close()


async def _carry_out_in_task(steps: Steps[T]) -> T:
    """Carries steps out in this task. If it is cancelled, the steps are told by the exception."""
    try:
        step = next(steps)
        while True:
            try:
                outcome = await step.do_in_task()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _beside(steps: Steps[Any], awaited: float = 0) -> None:
    """Carries steps out in a thread of their own. The end of the process waits for them, for at most `awaited` seconds."""
    beside = threading.Thread(target=_carry_out, args=(steps,), name="holdfast-beside", daemon=True)
    beside.start()
    if awaited > 0:
        threading.Thread(target=beside.join, args=(awaited,), name="holdfast-awaits", daemon=False).start()


async def _in_thread(function: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, error: Optional[BaseException]) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def call() -> None:
        result: Any = None
        failure: Optional[BaseException] = None
        try:
            result = function()
        except BaseException as error:
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            pass  # The loop is closed: nobody waits for it.

    threading.Thread(target=call, name="holdfast-request", daemon=True).start()
    return await future


#: The options of a run: length, wait, payload, time of the result, attempts, which errors are final, and the time without progress.
_RunOptions = Tuple[float, float, Any, float, int, Callable[[BaseException], bool], Optional[float]]


class _Calls(Generic[L]):
    """What both clients are: their options, one request, and the steps of each call."""

    #: The classes of what a client makes, for threads or for tasks.
    _lock: ClassVar[Any]
    _run: ClassVar[Any]
    _event: ClassVar[Any]
    _lost: ClassVar[Any]
    #: True if the work of a run is awaited.
    _is_async: ClassVar[bool]

    def _start(self, steps: Steps[None]) -> Any:
        """Starts a heartbeat, beside its caller."""
        raise NotImplementedError

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        *,
        sign: Optional[bool] = None,
        token: str | Callable[[], str] | None = None,
        owner: str | None = None,
        timeout: float = 10,
    ) -> None:
        """`url` is HOLDFAST_URL by default. A list, or commas in the text, names several services of one table, the nearest first: requests go
        to the first that answers. On AWS either `sign` (signature version 4, by botocore) or `token` (a JWT, or what returns one).
        `sign` is True by default for the URL of an API or a function in AWS, if there is no token; give it for a domain of your own.
        `timeout`: the limit of each request in seconds, and of sending it again without an answer."""
        url = url or os.environ.get("HOLDFAST_URL") or ""
        urls = [one.rstrip("/") for one in (url.split(",") if isinstance(url, str) else url)]
        if not urls or not all(urls):
            raise ValueError("url: name the service, or set HOLDFAST_URL")
        self._owner = owner
        #: How far the service's clock is ahead of this one, if it refused an id for its time.
        self.offset_ms = 0
        self.timeout = timeout
        self._token = token
        self._doors = [_Door(one, self._signer_of(one, sign), is_proven=at == 0) for at, one in enumerate(urls)]

    @property
    def url(self) -> str:
        """The URL of the first service."""
        return self._doors[0].url

    @url.setter
    def url(self, url: str) -> None:
        self._doors[0].url = url

    def _signer_of(self, url: str, sign: Optional[bool]) -> Optional[Sign]:
        service, region = _aws_host(url)
        is_signed = (service and not self._token) if sign is None else sign
        return _signer(url, service or "execute-api", region) if is_signed else None

    @property
    def owner(self) -> str:
        """A label for people: the given one, or this host and process, also after a fork."""
        return self._owner or f"{socket.gethostname()}:{os.getpid()}"[:128]

    def lock(
        self,
        name: str,
        timeout: Optional[float] = 30,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
        *,
        priority: int = 0,
        limit: int = 1,
        permits: int = 1,
        shared: bool = False,
        progress_timeout: float | None = None,
    ) -> L:
        """Returns the lock of this key, not acquired yet. The parameters are those of redis-py's `lock()`; `timeout` is the lease's length
        in seconds (1 to 86,400; a shorter one is raised to 1; None is 30), and the service's queue takes the place of `sleep`.
        Semaphores: of `limit` permits this takes `permits`. A `shared` lock is held with others that are shared.
        `progress_timeout`: the longest time between two `progress()`, in seconds, at least `timeout`; the first counts from the grant. After
        it the lock is lost, and is renewed no more. None is no limit."""
        options = {"priority": priority, "limit": limit, "permits": permits, **({"mode": "shared"} if shared else {})}
        more = {"options": options, "progress_timeout": progress_timeout}
        made = self._lock(self, name, timeout, sleep, blocking, blocking_timeout, thread_local, raise_on_release_error, **more)
        return made  # type: ignore[no-any-return]

    def lock_all(
        self,
        names: Iterable[str],
        timeout: Optional[float] = 30,
        *,
        shared: Iterable[str] = (),
        blocking: bool = True,
        blocking_timeout: float | None = None,
        progress_timeout: float | None = None,
    ) -> L:
        """Returns the lock of all these keys, not acquired yet: it is granted for all of them or for none, whatever their order, and lost as
        soon as one of them is. Those of `shared` are held with others that are shared. At most 25 keys. `progress_timeout` is that of `lock()`."""
        modes = {**dict.fromkeys(_listed(names), "exclusive"), **dict.fromkeys(_listed(shared), "shared")}
        options = {"locks": [{"key": name, "mode": mode} for name, mode in modes.items()]}
        more = {"options": options, "modes": modes, "progress_timeout": progress_timeout}
        made = self._lock(self, " ".join(modes), timeout, 0.1, blocking, blocking_timeout, **more)
        return made  # type: ignore[no-any-return]

    def _run_once(self, name: str, work: Callable[[Any], Any], options: _RunOptions) -> Steps[Any]:
        length, wait, payload, keep_result, max_attempts, is_final, progress_timeout = options
        _check_function("work", work, is_awaited=self._is_async)
        _check_function("is_final", is_final)
        _check_progress(progress_timeout, length)
        body = {"leaseMs": _ms(length), "keepResultMs": _ms(keep_result), "maxAttempts": max_attempts, "owner": self.owner}
        if payload is not NO_PAYLOAD:
            body["fingerprint"] = fingerprint(payload)
        hold = _Hold(self, "runs", name)
        try:
            answer = yield from hold.acquire(body, time.monotonic() + wait)
        except Problem as problem:
            if problem.code == "attempts-exhausted":
                problem.args = (f"{problem.code}: {EXHAUSTED.format(max_attempts)}",)
            raise
        if answer["state"] == "succeeded":
            if answer.get("resultOmitted"):
                raise _omitted(name, "its caller was told why")
            return _from_json(answer.get("result"))
        if answer["state"] == "failed":
            raise RunFailed(name, answer.get("error"))
        run = self._run(name, answer["attempt"], answer["takeover"], answer.get("checkpoint"), answer["fencingToken"], hold)
        outcome: Mapping[str, Any] = {"state": "failed", "error": {"name": "Interrupted", "message": ""}, "retryable": True}
        try:
            hold.keep(progress_timeout)
            try:
                result = yield _Work(work, run)
            except BaseException as error:
                if hold.is_of_parent():
                    raise  # The end of a child that the work forked.
                try:
                    final = is_final(error)
                except Exception:
                    final = False
                described = {"name": type(error).__name__, "message": str(error)[:800]}
                outcome = {"state": "failed", "error": described, "retryable": not final}
                if isinstance(error, GeneratorExit):
                    raise  # Nobody carries out more steps.
                try:
                    yield from hold.record(outcome)
                except Problem:
                    pass  # The work's own error says more. The lease ends by itself.
                if final:
                    raise RunFailed(name, described) from error
                raise
            # The work is done, and must not be done again.
            outcome = {"state": "succeeded", "resultOmitted": True}
            because, outcome = _outcome(result)
            yield from hold.record(outcome)
        except BaseException:
            hold.abandon("PUT", "/outcome", outcome)
            raise
        if because:
            raise _omitted(name, because)
        return result

    def _take(self, name: str, rates: Sequence[Rate], cost: int, wait: float) -> Steps[float]:
        start = yield from self._of_limit(name, "takes", rates, {"cost": cost, **({"waitMs": _ms(wait)} if wait > 0 else {})})
        yield _Pause(start)
        return start

    def _charge(self, name: str, rates: Sequence[Rate], cost: int) -> Steps[None]:
        # A take that nobody starts by: the longest wait has room for what is owed.
        if cost != 0:
            yield from self._of_limit(name, "takes", rates, {"cost": cost, "waitMs": _ms(86_400)})

    def _shut(self, name: str, rates: Sequence[Rate], seconds: float, reason: str) -> Steps[None]:
        yield from self._of_limit(name, "shut", rates, {"forMs": _ms(seconds), "reason": reason})

    def _of_limit(self, name: str, what: str, rates: Sequence[Rate], more: Mapping[str, Any]) -> Steps[float]:
        """Takes from a limit or shuts it. Returns the seconds until the start."""
        listed = [{"count": r.count, "perMs": _ms(r.per), **({} if r.burst is None else {"burst": r.burst})} for r in rates]
        is_taken = lambda taken: _is_count(taken.get("startInMs")) and isinstance(taken.get("remaining"), list)
        answer = (yield from self._call("POST", f"/v1/limits/{_name(name)}/{what}", {"rates": listed, **more}, proves=is_taken))[1]
        start: float = answer["startInMs"] / 1000
        return start

    def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        wait: int = 0,
        timeout: Optional[float] = None,
        again: bool = True,
        prefer: bool = False,
        proves: Callable[[Mapping[str, Any]], bool] = lambda answer: True,
        until: Callable[[Problem], bool] = lambda problem: problem.again,
    ) -> Steps[Tuple[int, Dict[str, Any]]]:
        """Sends a request, and sends it again while there is no definite answer, for `timeout` seconds. Returns status and body.
        Raises `Problem`; with status 0 if there was no answer. An answer that `proves` nothing is none."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        tries, definite = 0, True
        failed: list[_Door] = []
        while True:
            door = self._next(failed)
            others = [other for other in self._doors if other is not door and other not in failed and other.may_be_asked]
            try:
                left = max(0.1, end - time.monotonic())
                left = min(left, SILENT_SEC) if others and again else left
                status, answer = yield _Request(lambda: self._send(method, path, body, wait, left, prefer, door))  # noqa: B023
                if not proves(answer):
                    raise Problem(0, {**NO_ANSWER, "detail": f"{method}: the answer {status} is none to this request"})
                door.failures = 0
                return status, {**answer, "repeated": not definite}
            except Problem as problem:
                definite = problem.definite = definite and problem.definite
                problem.name = _named(path)
                pause = min(PAUSE_SEC, 0.05 * 2 ** min(tries, 9)) * random.uniform(0.5, 1)
                elsewhere = False
                if problem.code in ("unavailable", "internal") and others:
                    failed = [one for one in failed if one is not door] + [door]
                    door.fail()
                    elsewhere = again and (yield from self._prove(others))
                # What a door says of its return is no reason to wait for another, or not to ask it.
                pause += 0 if elsewhere else problem.retry_after
                if not again or not (elsewhere or until(problem)) or time.monotonic() + pause >= end:
                    raise
            tries += 1
            yield _Pause(pause)

    def _next(self, failed: Sequence[_Door]) -> _Door:
        """Returns the first door that may be used: one where this call has not failed and that doesn't rest, if there is one."""
        proven = [door for door in self._doors if door.is_proven]
        fresh = [door for door in proven if door not in failed]
        awake = [door for door in fresh if not door.rests]
        return (awake or fresh or [door for door in failed if door.is_proven] or proven)[0]

    def _prove(self, doors: Sequence[_Door]) -> Steps[bool]:
        """True if one of these leads to the table of the first: the table there lists the URL of the first, which only its service writes."""
        for door in doors:
            if not door.is_proven:
                try:
                    told = (yield _Request(lambda: self._send("GET", "/v1/health?caller=1", None, 0, SILENT_SEC, False, door)))[1]  # noqa: B023
                except Problem:
                    continue
                listed = told.get("doors")
                if not any(f"{self.url}/".startswith(f"{str(one).rstrip('/')}/") for one in (listed if isinstance(listed, list) else [])):
                    door.refuse()
                    continue
                door.is_proven = True
            return True
        return False

    def _send(
        self, method: str, path: str, body: Any, wait: int, timeout: float, prefer: bool = False, door: Optional[_Door] = None
    ) -> tuple[int, dict[str, Any]]:
        door = door or self._doors[0]
        headers: Dict[str, str] = {}
        try:
            data = None if body is None else json.dumps(body).encode()
            if data is not None:
                headers["content-type"] = "application/json"
            if wait > 0 or prefer:
                headers["prefer"] = f"wait={max(1, wait)}"
            if self._token:
                token = self._token() if callable(self._token) else self._token
                if not re.fullmatch(r"[\t\x20-\x7e\x80-\xff]*", token):
                    detail = "the token has a character that no header has"
                    raise Problem(0, {"code": "not-configured", "detail": detail, "definite": True, "retry": "never"})
                headers["authorization"] = f"Bearer {token}"
            if door.sign:
                headers = door.sign(method, door.url + path, data, headers)
        except Problem:
            raise
        except Exception as error:
            raise _no_answer(method, door, error) from None
        try:
            request = urllib.request.Request(door.url + path, data, headers, method=method)
            # The service may hold it open for as long as it was asked to.
            with OPENER.open(request, timeout=min(self.timeout, timeout) + (0 if prefer else wait)) as answer:
                text = answer.read(2_000_000)
                parsed = json.loads(text) if text else {}
                if not isinstance(parsed, dict):
                    raise ValueError("no object")
                return answer.status, {**parsed, "leaseState": answer.headers.get("lease-state", "")}
        except urllib.error.HTTPError as error:
            raise self._problem(error, headers) from None
        except UNANSWERED as error:
            raise _no_answer(method, door, error) from None

    def _problem(self, error: urllib.error.HTTPError, headers: Mapping[str, str]) -> Problem:
        """Returns what an answer that is no success means. Without the service's media type it is a gateway's."""
        try:
            with error:
                body = _json(error.read(2_000_000))
        except UNANSWERED:
            body = {}
        by_service = error.headers.get("content-type", "").startswith("application/problem+json") and isinstance(body.get("code"), str)
        if by_service:
            return Problem(error.code, body, by_service=True)
        said = str(body.get("message") or body.get("Message") or "").split("\n")[0]
        for value in headers.values():
            for secret in (value, value.replace("Bearer ", "")):
                said = said.replace(secret, "…") if len(secret) >= 8 else said
        code, retry = GATEWAY.get(error.code, ("unavailable", "same"))
        detail = f"a gateway answered {error.code} before the service was reached: {LEASE_ID.sub('…', said)[:200]}"
        return Problem(error.code, {"code": code, "detail": detail, "retry": retry, "definite": error.code in GATEWAY})


#: The silence of a door, in seconds, after which another one is asked.
SILENT_SEC = 1.0
NO_ANSWER: Mapping[str, Any] = {"code": "unavailable", "retry": "same", "definite": False}
#: The exceptions of a request without an answer. Any other is no matter of the request, such as that of a signal's handler, and goes to the caller.
UNANSWERED = (OSError, http.client.HTTPException, ValueError, RecursionError)
#: The code and the advice of what a gateway answers by itself, before the service.
GATEWAY = {
    401: ("not-configured", "never"),
    403: ("forbidden", "never"),
    404: ("not-found", "never"),
    413: ("too-large", "never"),
    429: ("throttled", "later"),
}


def _no_answer(method: str, door: _Door, error: Exception) -> Problem:
    # Not the message: it may quote the path, which has the lease id, or the token.
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return Problem(0, {**NO_ANSWER, "detail": f"{method} {door.url}: no answer ({type(cause).__name__})"})


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is no answer: what it names gets no token and no lease id."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Until(io.RawIOBase):
    """Reads a connection until one end, however slowly its bytes come: the timeout of a socket begins anew with each."""

    def __init__(self, connection: socket.socket, raw: io.RawIOBase, end: float) -> None:
        super().__init__()
        self._connection, self._raw, self._end = connection, raw, end

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> Optional[int]:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._raw.readinto(into)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer that is read until one end."""

    def __init__(self, end: float, connection: socket.socket, *rest: Any, **options: Any) -> None:
        super().__init__(connection, *rest, **options)
        self.fp = io.BufferedReader(_Until(connection, self.fp.detach(), end))


class _OneEnd(urllib.request.AbstractHTTPHandler):
    """The timeout of a request is that of all of it."""

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> http.client.HTTPResponse:
        end = time.monotonic() + (req.timeout or 0)

        def connection(*where: Any, **how: Any) -> http.client.HTTPConnection:
            made: http.client.HTTPConnection = http_class(*where, **how)
            made.response_class = functools.partial(_Answer, end)  # type: ignore[assignment]
            return made

        return super().do_open(connection, req, **options)


class _Http(_OneEnd, urllib.request.HTTPHandler): ...


class _Https(_OneEnd, urllib.request.HTTPSHandler): ...


OPENER = urllib.request.build_opener(_NoRedirect, _Http, _Https)


def _named(path: str) -> str:
    """Returns the key of a path; empty for another path, as that of a set, which has the lease id."""
    _, _, kind, *rest = [*path.split("?")[0].split("/"), "", ""]
    return rest[0] if kind in ("locks", "runs", "limits") else ""


def _outcome(result: Any) -> Tuple[str, Mapping[str, Any]]:
    """Returns the outcome of work that is done, and before it why its result can't be kept; empty if it can."""
    try:
        kept = _to_json(result, "result")
        if len(_text(kept).encode()) > RESULT_BYTES:
            raise Unkeepable(f"result: is over {RESULT_BYTES} bytes as JSON")
        return "", {"state": "succeeded", "result": kept}
    except (TypeError, ValueError, RecursionError) as error:
        return str(error), {"state": "succeeded", "resultOmitted": True}


def _omitted(name: str, because: str) -> Problem:
    detail = f"run {name}: it succeeded, but its result was not kept: {because}"
    return Problem(0, {"code": "result-omitted", "detail": detail, "retry": "never", "definite": False})


class _Loss:
    """The event of a loss. It is set also without a heartbeat, because it is computed."""

    def __init__(self, hold: _Hold) -> None:
        super().__init__()
        self._hold = hold

    def is_set(self) -> bool:
        return super().is_set() or self._hold.is_over()  # type: ignore[misc]


class _Lost(_Loss, threading.Event):
    """The event for threads."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        end = time.monotonic() + (FOREVER_SEC if timeout is None else timeout)
        while not self.is_set() and time.monotonic() < end:
            super().wait(max(0.01, min(0.5, end - time.monotonic())))
        return self.is_set()


class _AsyncLost(_Loss, asyncio.Event):
    """The event for tasks."""

    async def wait(self) -> Any:
        while not self.is_set():
            try:
                await asyncio.wait_for(super().wait(), max(0.01, min(0.5, self._hold.left())))
            except asyncio.TimeoutError:
                pass
        return True


class _Hold:
    """One lease, its deadline on this machine's clocks, and the heartbeat that renews it. It belongs to the process that took it."""

    def __init__(self, client: _Calls[Any], kind: str, name: str) -> None:
        self._check(name)
        self.client = client
        self.kind, self.name = kind, name
        self.length = 0
        #: The token of each key.
        self.fencing_tokens: Mapping[str, int] = {}
        self.lost = client._lost(self)
        self._sent = (0.0, 0.0)
        self._lasts = 0.0
        self._renew_after = 0.0
        self._over = False
        self._concluded = False
        self._progress_timeout: Optional[float] = None
        self._progressed = (0.0, 0.0)
        self._why = "another may have had it since, so undo what it guarded"
        self._ended = client._event()
        self._heartbeat: Any = None
        #: The place of each checkpoint among those of the hold.
        self._sequence = itertools.count(1)
        self._pid = os.getpid()
        self._new_id()

    def _new_id(self, above_ms: int = 0) -> None:
        self._over = self._may_live = False
        self.id = lease_id(self.client.offset_ms, above_ms)
        self.path = self._path()

    # What is another of a set.

    def _check(self, name: str) -> None:
        _name(name)

    def _path(self) -> str:
        return f"/v1/{self.kind}/{self.name}/leases/{self.id}"

    def _end(self) -> Tuple[str, str, Any]:
        """Returns the request that ends the lease: its method, what follows the path, and its body."""
        return "DELETE", "", None

    def _renewal(self, length: int) -> Dict[str, Any]:
        return {"leaseMs": length}

    def _tokens(self, answer: Mapping[str, Any]) -> Mapping[str, int]:
        return {self.name: answer.get("fencingToken")} if answer.get("key") == self.name else {}  # type: ignore[dict-item]

    def _state(self, answer: Mapping[str, Any]) -> str:
        """Returns how the lease ended; empty if the answer doesn't say that."""
        return str(answer.get("leaseState") or "")

    def acquire(self, body: dict[str, Any], end: float) -> Steps[Dict[str, Any]]:
        """Asks under one id after another until `end`, and cancels what it leaves. Raises `Problem`."""
        self.length = body["leaseMs"]
        pause, waits = 0.04, end > time.monotonic()
        while True:
            is_last = time.monotonic() >= end
            try:
                return (yield from self._under_one_id(body, end, waits))
            except Problem as problem:
                problem.name = self.name
                if not (problem.by_service and problem.definite) or self._may_live:
                    yield from self._cancel()
                if problem.code not in WAITABLE or (not waits and problem.retry != "new-lease"):
                    raise
                # A process that stood still may find the id of its place forgotten: the last request is under a new one.
                ended = time.monotonic() >= end and (is_last or problem.code != "lease-over")
                if ended and (waits or pause > 1):
                    raise
                if problem.code == "lease-id-time" and _is_count(problem.body.get("serverTimeMs")):
                    self.client.offset_ms = problem.body["serverTimeMs"] - int(time.time() * 1000)
                self._new_id(_count(problem.body.get("leaseIdAboveMs")))
                if problem.retry != "new-lease":
                    least = min(problem.retry_after, PAUSE_SEC) if problem.code != "locked" else 0
                    yield _Pause(max(0.0, min(max(pause, least), end - time.monotonic())))
                pause = min(PAUSE_SEC, pause * 2)
            except BaseException:
                # An interruption: nobody waits for the cancelling.
                _beside(self._cancel(), CANCEL_SEC)
                raise

    def _under_one_id(self, body: dict[str, Any], end: float, waits: bool) -> Steps[Dict[str, Any]]:
        self._may_live = False
        is_run = self.kind == "runs"
        while True:
            left = end - time.monotonic()
            wait = min(HOLD_SEC, int(left)) if is_run and left >= 1 else 0
            self._began()
            status, answer = yield from self._call(
                *("PUT", "", body), wait=wait, prefer=waits and not is_run, timeout=max(left, 3.0) if waits else 3.0, proves=self._is_mine
            )
            if status != 202 and "remainingMs" not in answer:
                return answer  # The outcome of an earlier run.
            if status != 202:
                if (yield from self._is_sure(answer)):
                    return answer
                raise Problem(0, {"code": "locked", "detail": "the lease was nearly over", "definite": True, "retry": "later"})
            self._may_live = True
            if left <= 0:
                raise Problem(423, {"code": "locked", "detail": "still waiting", "definite": True, "retry": "later"})
            pause = min(max(_count(answer.get("retryAfterMs")) / 1000, 0.02), PAUSE_SEC)
            yield _Pause(max(0.0, min(pause, end - time.monotonic())))

    def _is_sure(self, answer: Mapping[str, Any]) -> Steps[bool]:
        """Takes a grant, and renews one that is nearly over: the service may have held its request. False if it is over."""
        self._may_live = True
        self._read(answer, self._sent_at)
        if self.remaining() >= self._renew_after:
            return True
        try:
            yield from self.renew(self.length)
        except Problem:
            return False
        return self.remaining() > 0

    def _began(self) -> None:
        self._sent_at = _now()

    def _is_mine(self, answer: Mapping[str, Any]) -> bool:
        """True if it is a lease of this key and id, a place in its queue, or the outcome of the run."""
        if answer.get("state") == "waiting":
            return _is_count(answer.get("position"))
        if answer.get("state") in ("succeeded", "failed"):
            return _is_count(answer.get("attempt"))
        counts = [answer.get(count) for count in ("remainingMs", "renewAfterMs", "leaseMs")]
        tokens = self._tokens(answer)
        return answer.get("leaseId") == self.id and bool(tokens) and all(map(_is_count, (*counts, *tokens.values())))

    def _read(self, lease: Mapping[str, Any], sent: tuple[float, float]) -> None:
        self.fencing_tokens = self._tokens(lease)
        # Counted from the sending, and no longer than was asked for: never believed to be longer than it is.
        lasts = min(lease["remainingMs"], max(self.length, 1000))
        self._sent, self._lasts = sent, (lasts - max(lasts * 0.01, 50)) / 1000
        self._renew_after = lease["renewAfterMs"] / 1000

    def keep(self, progress_timeout: Optional[float]) -> None:
        """Starts to renew the lease, until it ends, is lost, or shows no progress for so many seconds."""
        self._progress_timeout, self._progressed = progress_timeout, _now()
        self._heartbeat = self.client._start(self._beat())

    def _beat(self) -> Steps[None]:
        pause = self._renew_after
        while not (yield _Pause(max(0.0, min(pause, self.left() / 2)), self._ended)):
            if self.left() <= 0:
                break
            try:
                yield from self.renew(self.length)
                pause = self._renew_after * random.uniform(0.9, 1.0)
            except Problem as problem:
                if problem.by_service and problem.code == "lease-lost":
                    self._over = True
                    break
                pause = min(1.0, self._renew_after / 4)
            except (asyncio.CancelledError, GeneratorExit):
                raise  # The end of the loop.
            except BaseException:
                # Nothing else but the end of the lease ends a heartbeat.
                pause = min(1.0, self._renew_after / 4)
            if self.left() < 0.05:
                yield _Pause(max(0.0, self.left()))
        if not self._ended.is_set():
            self._over = True
            self.lost.set()

    def renew(self, length: int) -> Steps[None]:
        """Makes the lease `length` ms long from now, unless it is longer. Raises `Problem`."""
        sent = _now()
        # No answer is waited for past the end of the lease.
        left = max(0.1, min(self.left(), max(1.0, self.length / 6000), 3.0))
        answer = (yield from self._call("POST", "/renew", self._renewal(length), timeout=left, again=False, proves=self._is_mine))[1]
        self.length = max(self.length, length)
        self._read(answer, sent)

    def save(self, checkpoint: Any) -> Steps[None]:
        """Saves the checkpoint of a run, which is progress. Raises `LockNotOwnedError` if the lease is lost: nothing is sent after that."""
        if not self.progress():
            raise self._loss()
        # A late duplicate undoes no later one.
        saved = {"checkpoint": checkpoint, "sequence": next(self._sequence)}
        timeout = min(self.client.timeout, self.left())
        try:
            yield from self._call("POST", "/renew", saved, timeout=timeout, proves=self._is_mine)
        except Problem as problem:
            self._over = self._over or (problem.by_service and problem.code == "lease-lost")
            if self.held():
                raise
            raise self._loss() from problem
        if not self.held():
            raise self._loss()

    def is_of_parent(self) -> bool:
        """True in a process that was forked from the one that took it."""
        return self._pid != os.getpid()

    def _loss(self) -> LockNotOwnedError:
        why = "it belongs to the process that took it" if self.is_of_parent() else f"the lease was lost: {self._why}"
        return LockNotOwnedError(f"{self.name}: {why}")

    def _call(self, method: str, suffix: str, body: Any, **how: Any) -> Steps[Tuple[int, Dict[str, Any]]]:
        """Sends a request about the lease. Raises `LockNotOwnedError` in place of that in a process that was forked."""
        if self.is_of_parent():
            raise self._loss()
        return self.client._call(method, self.path + suffix, body, **how)

    def left(self) -> float:
        """Returns for how many seconds more the lease is sure."""
        if self._over or self.is_of_parent() or self._is_silent():
            return 0.0
        return self._lasts - _since(self._sent)

    def _is_silent(self) -> bool:
        """True if the work has shown no progress for too long. After the work none is asked for."""
        if self._progress_timeout is None or self._concluded:
            return False
        silence = _since(self._progressed)
        if silence < self._progress_timeout:
            return False
        self._over = True
        self._why = f"no progress for {silence:.1f} s; its progress_timeout is {self._progress_timeout} s"
        return True

    def progress(self) -> bool:
        """Says that the work gets on. True if the lease is held."""
        if not self.held():
            return False
        self._progressed = _now()
        return True

    def is_over(self) -> bool:
        return not self._concluded and self.left() <= 0

    def held(self) -> bool:
        """True if the lease is held for certain: computed, without a request."""
        if self._concluded:
            return False
        if self.left() > 0:
            return True
        self._over = True
        return False

    def remaining(self) -> float:
        return max(0.0, self.left()) if self.held() else 0.0

    def release(self) -> Steps[str]:
        """Releases the lease. Raises `LockNotOwnedError` if it was lost, and `Problem` if the service doesn't answer."""
        self._ended.set()
        was_held = self.held()
        self._concluded = True
        answer = yield from self._until_over(*self._end(), min(5.0, self.client.timeout))
        state = self._state(answer)
        if not was_held or state in ("lost", "never") or (state == "unknown" and not answer["repeated"]):
            raise self._loss()
        return state

    def record(self, outcome: Mapping[str, Any]) -> Steps[None]:
        """Ends the work, and records its outcome, while the heartbeat goes on."""
        self._concluded = True
        try:
            yield from self._until_over("PUT", "/outcome", outcome, min(10.0, self.client.timeout))
        except Problem as problem:
            if problem.code == "lease-lost" and problem.by_service:
                raise LockNotOwnedError(f"the lease was lost: {problem}") from problem
            raise

    def _is_end(self, answer: Mapping[str, Any]) -> bool:
        """True if the answer says how the lease ended, or that an outcome was recorded."""
        return bool(self._state(answer)) or answer.get("recorded") is True

    def _until_over(self, method: str, suffix: str, body: Any, waits: float) -> Steps[Dict[str, Any]]:
        """Sends it until the service has answered: for a while before its caller, and then until the lease is over, beside it."""
        try:
            return (yield from self._call(method, suffix, body, timeout=waits, until=_is_open, proves=self._is_end))[1]
        except LockNotOwnedError:
            raise  # It is its parent's to send.
        except Problem as problem:
            if _is_open(problem):
                self.leave(method, suffix, body)
            raise
        except BaseException:
            # An interruption, after which the process often ends: it waits as its caller would have.
            self.leave(method, suffix, body, waits)
            raise
        finally:
            self._ended.set()

    def leave(self, method: str, suffix: str, body: Any, awaited: float = 0) -> None:
        """Ends the work; sends this beside its caller, until the service has answered or the lease is over. The end of the process waits for
        it, for at most `awaited` seconds."""
        rest = max(1.0, min(self.left(), self.length / 1000))
        self._concluded = True
        self._ended.set()
        _beside(self._quietly(method, suffix, body, rest), awaited)

    def abandon(self, method: str, suffix: str, body: Any) -> None:
        """Ends it beside its caller, whom an interruption kept from that. Does nothing if its end has begun, or is its parent's to send."""
        if not self._ended.is_set() and not self.is_of_parent():
            self.leave(method, suffix, body, CANCEL_SEC)

    def _quietly(self, method: str, suffix: str, body: Any, waits: float) -> Steps[None]:
        try:
            yield from self._call(method, suffix, body, timeout=waits, until=_is_open, proves=self._is_end)
        except (Problem, LockNotOwnedError):
            pass

    def _cancel(self) -> Steps[None]:
        """Cancels a request of unknown outcome, or leaves the queue. Without an answer the lease ends by itself."""
        self._concluded = True
        yield from self._quietly(*self._end(), CANCEL_SEC)
        self._concluded = False


def _is_open(problem: Problem) -> bool:
    """True if the service may still answer otherwise."""
    return problem.again or not problem.by_service


class _SetHold(_Hold):
    """One lease of several keys: of all of them or of none, and lost as soon as one of them is."""

    def __init__(self, client: _Calls[Any], name: str, modes: Mapping[str, str]) -> None:
        self.modes = modes
        super().__init__(client, "lock-sets", name)

    def _check(self, name: str) -> None:
        if not 0 < len(self.modes) <= SET_KEYS:
            raise LockError(f"names: {len(self.modes)} given; they are 1 to {SET_KEYS}")
        for one in self.modes:
            _name(one)

    def _path(self) -> str:
        return f"/v1/lock-sets/{self.id}"

    def _end(self) -> Tuple[str, str, Any]:
        return "POST", "/release", {"keys": list(self.modes)}

    def _renewal(self, length: int) -> Dict[str, Any]:
        return {"leaseMs": length, "keys": list(self.modes)}

    def _tokens(self, answer: Mapping[str, Any]) -> Mapping[str, int]:
        tokens = answer.get("fencingTokens")
        return {one: tokens.get(one) for one in self.modes} if isinstance(tokens, dict) else {}  # type: ignore[misc]

    def _state(self, answer: Mapping[str, Any]) -> str:
        states = answer.get("states")
        if not isinstance(states, dict) or not all(one in states for one in self.modes):
            return ""
        return next((state for state in WORST if state in states.values()), "unknown")

    def acquire(self, body: dict[str, Any], end: float) -> Steps[Dict[str, Any]]:
        """Asks for the set. Blocked by a key, it waits for its turn in that key's queue, and then asks for all of them under the scope of this
        turn. If another key blocks it then, it gives the turn back and waits at that one. A key that blocks it again has callers all the
        time, and so may the others: from then on it keeps its turns, for a bounded time (the SDK's decision 070)."""
        scope = {"scope": secrets.token_urlsafe(24)}
        blockers: set[str] = set()
        turns: list[_Hold] = []
        keeps, kept_until = False, 0.0
        try:
            while True:
                try:
                    return (yield from super().acquire({**body, **(scope if blockers else {})}, 0))
                except Problem as problem:
                    blocker = next((one for one in problem.body.get("blocking") or [] if one in self.modes), "")
                    if problem.code not in WAITABLE or time.monotonic() >= end:
                        raise
                if not blocker:
                    yield _Pause(max(0.0, min(PAUSE_SEC, end - time.monotonic())))
                    continue
                keeps = keeps or blocker in blockers
                blockers.add(blocker)
                if not keeps:
                    _give_back(turns)
                turn = _Hold(self.client, "locks", blocker)
                # Who holds this key may wait for those that are kept.
                until = min(end, kept_until) if turns else end
                try:
                    yield from turn.acquire({"leaseMs": self.length, "owner": body["owner"], "mode": self.modes[blocker], **scope}, until)
                except Problem as problem:
                    if problem.code != "locked" or until == end:
                        raise
                    _give_back(turns)
                else:
                    if not turns:
                        kept_until = time.monotonic() + min(KEPT_SEC, self.length / 2000)
                    turns.append(turn)
        finally:
            _give_back(turns)


def _give_back(turns: list[_Hold]) -> None:
    """Releases the turns of a set, beside it."""
    for turn in turns:
        _beside(turn._cancel(), CANCEL_SEC)
    turns.clear()


class _Here:
    """The place of a hold that all threads share."""


class _Locking:
    """What both locks are. One object holds once at a time; each `acquire` is a new lease."""

    def __init__(
        self,
        client: _Calls[Any],
        name: str,
        timeout: Optional[float] = 30,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
        options: Optional[Mapping[str, Any]] = None,
        modes: Optional[Mapping[str, str]] = None,
        progress_timeout: float | None = None,
    ) -> None:
        if timeout is not None and not 0 < timeout <= 86_400:
            raise LockError(f"timeout: {timeout} given; it is up to 86,400 seconds, or None")
        self._length = 30 if timeout is None else max(1, timeout)
        _check_progress(progress_timeout, self._length)
        self._progress_timeout = progress_timeout
        self.client = client
        self.name = name
        self.timeout = timeout
        self.sleep = sleep
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.raise_on_release_error = raise_on_release_error
        self._options = options or {}
        #: The keys of a set, and how each is held; None for one key.
        self._modes = modes
        self._local: Any = threading.local() if thread_local else _Here()
        #: The holds of with-blocks that are not left yet, of all threads, the oldest first.
        self._entered: list[_Hold] = []

    @property
    def _hold(self) -> Optional[_Hold]:
        hold: Optional[_Hold] = getattr(self._local, "hold", None)
        # Another thread may have left the with-block.
        return None if hold and hold._concluded else hold

    @_hold.setter
    def _hold(self, hold: Optional[_Hold]) -> None:
        self._local.hold = hold

    def _acquire(self, blocking: Optional[bool], blocking_timeout: Optional[float], token: None) -> Steps[bool]:
        if token is not None:
            raise LockError("token: can't be given; each acquire has a secret of its own")
        if self._hold or getattr(self._local, "asks", False):
            raise LockError("Cannot acquire a lock that is already held by this object, or asked for")
        blocking = self.blocking if blocking is None else blocking
        if blocking_timeout is None:
            blocking_timeout = self.blocking_timeout
        if not blocking:
            blocking_timeout = 0
        end = time.monotonic() + (FOREVER_SEC if blocking_timeout is None else blocking_timeout)
        hold = _Hold(self.client, "locks", self.name) if self._modes is None else _SetHold(self.client, self.name, self._modes)
        body = {"leaseMs": _ms(self._length), "owner": self.client.owner, **self._options}
        self._local.asks = True
        try:
            yield from hold.acquire(body, end)
        except Problem as problem:
            if problem.code in ("locked", "run-in-progress"):
                return False
            raise
        finally:
            self._local.asks = False
        try:
            hold.keep(self._progress_timeout)
            self._hold = hold
        except BaseException:
            hold.abandon(*hold._end())
            raise
        return True

    def _release(self) -> Steps[None]:
        hold, self._hold = self._hold, None
        if hold is None:
            raise LockError("Cannot release an unlocked lock")
        yield from hold.release()

    def _enter(self) -> None:
        """Notes the hold of a with-block."""
        self._local.entered = self._owned("")
        self._entered.append(self._local.entered)

    def _leave(self) -> Steps[None]:
        own = getattr(self._local, "entered", None)
        elsewhere: Optional[_Hold] = None
        if own in self._entered:
            self._entered.remove(own)
        elif self._entered:
            # The block was entered in another thread, as in a pool.
            elsewhere = self._entered.pop(0)
        try:
            yield from elsewhere.release() if elsewhere else self._release()
        except LockError:
            if self.raise_on_release_error:
                raise

    def _extend(self, additional_time: Optional[float], replace_ttl: bool) -> Steps[bool]:
        hold = self._owned("Cannot extend an unlocked lock", "Cannot extend a lock that's no longer owned")
        if self.timeout is None:
            raise LockError("Cannot extend a lock with no timeout")
        length = _ms((self.timeout if additional_time is None else additional_time) + (0 if replace_ttl else hold.remaining()))
        try:
            yield from hold.renew(max(1000, length))
        except Problem as problem:
            if problem.code == "lease-lost":
                raise LockNotOwnedError("Cannot extend a lock that's no longer owned") from problem
            raise
        return True

    def _locked(self) -> Steps[bool]:
        for name in [self.name] if self._modes is None else self._modes:
            if (yield from self.client._call("GET", f"/v1/locks/{_name(name)}"))[1]["holders"]:
                return True
        return False

    @property
    def fencing_token(self) -> int:
        """Increases with every grant of the key. Give it to the resource that you write to, which refuses a smaller one. Of a set it is the
        largest; `fencing_tokens` has each."""
        return max(self.fencing_tokens.values())

    @property
    def fencing_tokens(self) -> Mapping[str, int]:
        """The token of each key."""
        return self._owned("An unlocked lock has no token").fencing_tokens

    def progress(self) -> bool:
        """Says that the work gets on, for a lock with `progress_timeout`; it sends nothing. True if this object holds the lock for certain."""
        return self._hold is not None and self._hold.progress()

    def _owned(self, never: str, no_more: str | None = None) -> _Hold:
        if self._hold is None:
            raise LockError(never)
        if no_more and not self._hold.held():
            raise LockNotOwnedError(no_more)
        return self._hold


class Lock(_Locking):
    """A lock with the interface of redis-py's `Lock`. One object holds once at a time; each `acquire` is a new lease."""

    def acquire(
        self, sleep: float | None = None, blocking: bool | None = None, blocking_timeout: float | None = None, token: None = None
    ) -> bool:
        """Acquires the lock; False if it is held after `blocking_timeout` seconds (None: no end), or at once if not `blocking`.
        Raises `Problem` if the service can't be reached or refuses."""
        return _carry_out(self._acquire(blocking, blocking_timeout, token))

    def __enter__(self) -> Lock:
        before = self._hold
        try:
            if self.acquire():
                self._enter()
                return self
        except BaseException:
            # Nothing leaves a with-block that an interruption kept from beginning.
            if self._hold and self._hold is not before:
                self._hold.abandon(*self._hold._end())
            raise
        raise LockError(f"{self.name}: Unable to acquire lock within the time specified")

    def __exit__(self, *_error: object) -> None:
        try:
            _carry_out(self._leave())
        except BaseException:
            hold: Optional[_Hold] = getattr(self._local, "entered", None)
            if hold:
                hold.abandon(*hold._end())
            raise

    def release(self) -> None:
        """Releases the lock. Raises `LockError` if it was never acquired, and `LockNotOwnedError` if it was lost meanwhile."""
        _carry_out(self._release())

    def extend(self, additional_time: float, replace_ttl: bool = False) -> bool:
        """Makes the lease longer by `additional_time` seconds, or with `replace_ttl` that long from now. The lock renews itself, so this is
        for a time in which nothing can be sent. A lease never gets shorter."""
        return _carry_out(self._extend(additional_time, replace_ttl))

    def reacquire(self) -> bool:
        """Makes the lease `timeout` seconds long from now."""
        return _carry_out(self._extend(None, True))

    def owned(self) -> bool:
        """True if this object holds the lock for certain. Ask before each side effect: it costs no request."""
        return self._hold is not None and self._hold.held()

    def locked(self) -> bool:
        """True if anybody holds the lock."""
        return _carry_out(self._locked())

    @property
    def lost(self) -> threading.Event:
        """Is set when the lease is lost while it is held: wait for it, or look at it between two steps."""
        return self._owned("Cannot watch an unlocked lock").lost  # type: ignore[no-any-return]


class AsyncLock(_Locking):
    """A lock with the interface of redis-py's `redis.asyncio` `Lock`. Each task makes an object of its own."""

    async def acquire(self, blocking: bool | None = None, blocking_timeout: float | None = None, token: None = None) -> bool:
        """Acquires the lock; False if it is held after `blocking_timeout` seconds (None: no end), or at once if not `blocking`.
        Raises `Problem` if the service can't be reached or refuses. A task that is cancelled meanwhile leaves nothing behind."""
        return await _carry_out_in_task(self._acquire(blocking, blocking_timeout, token))

    async def __aenter__(self) -> AsyncLock:
        if await self.acquire():
            self._enter()
            return self
        raise LockError(f"{self.name}: Unable to acquire lock within the time specified")

    async def __aexit__(self, *_error: object) -> None:
        await _carry_out_in_task(self._leave())

    async def release(self) -> None:
        """Releases the lock. Raises `LockError` if it was never acquired, and `LockNotOwnedError` if it was lost meanwhile."""
        await _carry_out_in_task(self._release())

    async def extend(self, additional_time: float, replace_ttl: bool = False) -> bool:
        """Makes the lease longer by `additional_time` seconds, or with `replace_ttl` that long from now. The lock renews itself, so this is
        for a time in which the loop can't run. A lease never gets shorter."""
        return await _carry_out_in_task(self._extend(additional_time, replace_ttl))

    async def reacquire(self) -> bool:
        """Makes the lease `timeout` seconds long from now."""
        return await _carry_out_in_task(self._extend(None, True))

    async def owned(self) -> bool:
        """True if this object holds the lock for certain. Ask before each side effect: it costs no request."""
        return self._hold is not None and self._hold.held()

    async def locked(self) -> bool:
        """True if anybody holds the lock."""
        return await _carry_out_in_task(self._locked())

    @property
    def lost(self) -> asyncio.Event:
        """Is set when the lease is lost while it is held: wait for it, or look at it between two steps."""
        return self._owned("Cannot watch an unlocked lock").lost  # type: ignore[no-any-return]


@dataclass
class _Attempt:
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

    def progress(self) -> bool:
        """Says that the work gets on, for a run with `progress_timeout`; saving a checkpoint says so too. True if this attempt is the only one
        for certain."""
        return self._hold.progress()

    def _save_checkpoint(self, value: Any) -> Steps[None]:
        yield from self._hold.save(value)
        self.checkpoint = value


class Run(_Attempt):
    """One attempt at the work of a key, as its function sees it."""

    @property
    def lost(self) -> threading.Event:
        """Is set when the run is lost: another may begin it."""
        return self._hold.lost  # type: ignore[no-any-return]

    def save_checkpoint(self, value: Any) -> None:
        """Saves up to 8 KB of JSON for the attempt that takes over. Raises `LockNotOwnedError` if the run was lost."""
        _carry_out(self._save_checkpoint(value))


class AsyncRun(_Attempt):
    """One attempt at the work of a key, as its function sees it."""

    @property
    def lost(self) -> asyncio.Event:
        """Is set when the run is lost: another may begin it."""
        return self._hold.lost  # type: ignore[no-any-return]

    async def save_checkpoint(self, value: Any) -> None:
        """Saves up to 8 KB of JSON for the attempt that takes over. Raises `LockNotOwnedError` if the run was lost."""
        await _carry_out_in_task(self._save_checkpoint(value))


class Client(_Calls[Lock]):
    """Calls one service. Threads may share it. It keeps no connection open, so a fork is safe."""

    _lock, _run, _event, _lost, _is_async = Lock, Run, threading.Event, _Lost, False

    def _start(self, steps: Steps[None]) -> threading.Thread:
        thread = threading.Thread(target=_carry_out, args=(steps,), name="holdfast-heartbeat", daemon=True)
        thread.start()
        return thread

    def run_once(
        self,
        name: str,
        work: Callable[[Run], T],
        *,
        payload: Any = NO_PAYLOAD,
        timeout: float = 30,
        blocking_timeout: float = 45,
        keep_result: float = 86_400,
        max_attempts: int = 5,
        is_final: Callable[[BaseException], bool] = lambda error: False,
        progress_timeout: float | None = None,
    ) -> T:
        """Does the work once per key, and returns its result to every caller, now or later. The result is JSON.

        The work is done when it returns: a generator function or an `async def` is refused by `TypeError`, and so is such a result, as an error
        of the work. An error of the work lets the next caller start again; one that `is_final` is recorded, and every caller gets `RunFailed`.
        Raises `Problem`: `run-in-progress` after `blocking_timeout`, `fingerprint-mismatch` for another payload, `attempts-exhausted`;
        and `LockNotOwnedError` if somebody took the run over meanwhile: then nothing of this call was recorded.
        `progress_timeout`: the longest time between two `run.progress()` or `run.save_checkpoint()`, in seconds, at least `timeout`. After it
        the run is lost, and another may begin it. None is no limit.
        """
        options = (timeout, blocking_timeout, payload, keep_result, max_attempts, is_final, progress_timeout)
        result: T = _carry_out(self._run_once(name, work, options))
        return result

    def take(self, name: str, rates: Sequence[Rate], *, cost: int = 1, blocking_timeout: float = 0) -> float:
        """Takes from a limit, and returns the seconds waited. Raises `Problem` with the code `rate-limited` and the exact `retry_after` if it
        has no room within `blocking_timeout`."""
        return _carry_out(self._take(name, rates, cost, blocking_timeout))

    def charge(self, name: str, rates: Sequence[Rate], *, cost: int) -> None:
        """Charges what was used beyond a take, such as the tokens of an answer, and waits for nothing: takes that come later start when it has
        flowed in. Of 0, nothing is sent. Raises `Problem` with the code `rate-limited`, and charges nothing, if a day's inflow isn't enough for
        all that is owed."""
        _carry_out(self._charge(name, rates, cost))

    def shut(self, name: str, rates: Sequence[Rate], *, seconds: float, reason: str) -> None:
        """Shuts a limit for all its users: who takes afterwards starts in so many seconds at the earliest, at most a day. A limit that is shut for
        longer stays so."""
        _carry_out(self._shut(name, rates, seconds, reason))

    def call(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Tuple[int, Dict[str, Any]]:
        """Sends any request, and sends it again without a definite answer, unless not `again`. Returns status and body; raises `Problem`."""
        return _carry_out(self._call(method, path, body, again=again))


class AsyncClient(_Calls[AsyncLock]):
    """Calls one service from asyncio. It keeps no connection open, so there is nothing to close.

    A task renews each lease. A loop that is held up for longer than a lease loses it, and `owned()` says so. Each request is sent by a
    thread of its own, so the functions for the token and the signature may block.
    """

    _lock, _run, _event, _lost, _is_async = AsyncLock, AsyncRun, asyncio.Event, _AsyncLost, True

    def _start(self, steps: Steps[None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(_carry_out_in_task(steps))

    async def run_once(
        self,
        name: str,
        work: Callable[[AsyncRun], Awaitable[T]],
        *,
        payload: Any = NO_PAYLOAD,
        timeout: float = 30,
        blocking_timeout: float = 45,
        keep_result: float = 86_400,
        max_attempts: int = 5,
        is_final: Callable[[BaseException], bool] = lambda error: False,
        progress_timeout: float | None = None,
    ) -> T:
        """Does the work once per key, as `Client.run_once`. Work that is cancelled lets the next caller start again."""
        options = (timeout, blocking_timeout, payload, keep_result, max_attempts, is_final, progress_timeout)
        result: T = await _carry_out_in_task(self._run_once(name, work, options))
        return result

    async def take(self, name: str, rates: Sequence[Rate], *, cost: int = 1, blocking_timeout: float = 0) -> float:
        """Takes from a limit, as `Client.take`."""
        return await _carry_out_in_task(self._take(name, rates, cost, blocking_timeout))

    async def charge(self, name: str, rates: Sequence[Rate], *, cost: int) -> None:
        """Charges what was used beyond a take, as `Client.charge`."""
        await _carry_out_in_task(self._charge(name, rates, cost))

    async def shut(self, name: str, rates: Sequence[Rate], *, seconds: float, reason: str) -> None:
        """Shuts a limit, as `Client.shut`."""
        await _carry_out_in_task(self._shut(name, rates, seconds, reason))

    async def call(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Tuple[int, Dict[str, Any]]:
        """Sends any request, as `Client.call`."""
        return await _carry_out_in_task(self._call(method, path, body, again=again))


def _check_progress(progress_timeout: Optional[float], length: float) -> None:
    if progress_timeout is not None and not progress_timeout >= length:
        raise LockError(f"progress_timeout: {progress_timeout} given; it must be at least the timeout of {length} seconds")


def _now() -> Tuple[float, float]:
    return time.monotonic(), time.time()


def _since(moment: Tuple[float, float]) -> float:
    """Returns the seconds since then. The clock that shows more counts: one may be set, and the other stands still in a frozen process."""
    monotonic, wall = moment
    return max(time.monotonic() - monotonic, time.time() - wall)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _listed(names: Iterable[str]) -> Iterable[str]:
    if isinstance(names, str):
        raise LockError(f"names: {names!r} given; they are a list of keys")
    return names


def _json(text: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(text)
        return parsed if isinstance(parsed, dict) else {}
    except ValueError:
        return {}


def _aws_host(url: str) -> Tuple[str, str]:
    """Returns service and Region of {id}.execute-api.{region}.amazonaws.com and {id}.lambda-url.{region}.on.aws; empty for another host."""
    found = re.fullmatch(r"[^/.]+\.(?:(execute-api)\.([^/.]+)\.amazonaws\.com(?:\.cn)?|lambda-url\.([^/.]+)\.on\.aws)", _host(url))
    return (found[1] or "lambda", found[2] or found[3]) if found else ("", "")


def _host(url: str) -> str:
    return url.split("//")[-1].split("/")[0]


def _signer(url: str, service: str, region: str) -> Callable[[str, str, bytes | None, dict[str, str]], dict[str, str]]:
    """Returns a function that signs for API Gateway, or for a function URL, with the credentials that botocore finds."""
    try:
        import botocore.session  # type: ignore[import-not-found, unused-ignore]
        from botocore.auth import SigV4Auth  # type: ignore[import-not-found, unused-ignore]
        from botocore.awsrequest import AWSRequest  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ValueError(f"sign: {_host(url)} needs signed requests, for which botocore must be installed (or give a token)") from None

    session = botocore.session.get_session()
    # botocore reads AWS_DEFAULT_REGION alone, Lambda sets both, and the other SDKs read AWS_REGION.
    region = region or os.environ.get("AWS_REGION") or session.get_config_variable("region")
    if not region:
        raise ValueError(f"sign: there is no Region for {_host(url)}: set AWS_REGION, or a region in the profile")
    credentials = session.get_credentials()
    if credentials is None:
        raise ValueError("sign: there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give it a role")

    def sign(method: str, address: str, data: bytes | None, headers: dict[str, str]) -> dict[str, str]:
        request = AWSRequest(method=method, url=address, data=data, headers=headers)
        SigV4Auth(credentials.get_frozen_credentials(), service, region).add_auth(request)
        return dict(request.headers.items())

    return sign
