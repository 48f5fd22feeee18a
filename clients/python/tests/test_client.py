"""The client from outside, against a local service: exclusion, waiting, loss, runs, limits, lost answers, and asyncio."""

import asyncio
import concurrent.futures
import functools
import http.server
import inspect
import itertools
import json
import linecache
import os
import socket
import subprocess
import sys
import threading
import time
import unittest
import uuid
import warnings
from importlib.util import find_spec
from typing import Any, Callable
from unittest import mock

import holdfast
from holdfast import AsyncClient, AsyncLock, AsyncRun, Client, Lock, LockError, LockNotOwnedError, Problem, Rate, Run, RunFailed, key

try:
    import redis.asyncio.lock
    import redis.exceptions
    import redis.lock
except ImportError:
    redis = None  # type: ignore[assignment]

URL = os.environ["HOLDFAST_URL"]


def fresh(name: str) -> str:
    return key(name, uuid.uuid4().hex)


class LosesAnswers(Client):
    """Each request reaches the service, and its first answer is lost."""

    def __init__(self) -> None:
        super().__init__(URL)
        self.lost: set[str] = set()

    def _send(self, method: str, path: str, *rest: Any) -> tuple[int, dict[str, Any]]:
        answer = super()._send(method, path, *rest)
        if method + path in self.lost:
            return answer
        self.lost.add(method + path)
        raise Problem(0, {"code": "unavailable", "retry": "same", "definite": False})


class TwoDoors(Client):
    """The first door fails, and the table of the second lists these. Notes what is sent to each."""

    def __init__(self, first: str, listed: list[str]) -> None:
        super().__init__([first, URL], timeout=1.5)
        self.listed = listed
        self.sent: list[tuple[str, str]] = []

    def _send(self, method: str, path: str, *rest: Any) -> tuple[int, dict[str, Any]]:
        door = rest[-1]
        self.sent.append(("first" if door.url == self.url else "second", path.split("/")[2].split("?")[0]))
        status, answer = super()._send(method, path, *rest)
        return status, {**answer, "doors": self.listed} if path.startswith("/v1/health") else answer


class Held(AsyncClient):
    """Requests wait until they may pass, and some fail."""

    def __init__(self) -> None:
        super().__init__(URL)
        self.passes = threading.Event()
        self.sent: list[str] = []
        self.fails = 0

    def _send(self, method: str, *rest: Any) -> tuple[int, dict[str, Any]]:
        if not self.passes.wait(10):
            raise AssertionError("the request was held up")
        if self.fails:
            self.fails -= 1
            raise Problem(0, {"code": "unavailable", "retry": "same", "definite": False, "retryAfterMs": 500})
        self.sent.append(method)
        return super()._send(method, *rest)


class Locks(unittest.TestCase):
    def setUp(self) -> None:
        self.locks = Client(URL)
        self.key = fresh("LOCK")

    def held(self, **options: Any) -> Lock:
        lock = self.locks.lock(self.key, **options)
        self.assertTrue(lock.acquire())
        return lock

    def test_excludes_another_and_its_token_increases(self) -> None:
        first = self.held()
        other = self.locks.lock(self.key)
        self.assertFalse(other.acquire(blocking=False))
        self.assertTrue(other.locked())
        self.assertEqual((first.owned(), other.owned()), (True, False))
        token = first.fencing_token
        first.release()
        self.assertFalse(first.locked())
        with other:
            self.assertGreater(other.fencing_token, token)

    def test_a_wait_ends_with_the_key_or_without_a_place_in_the_queue(self) -> None:
        first, other, third = self.held(thread_local=False), self.locks.lock(self.key), self.locks.lock(self.key)
        self.assertFalse(other.acquire(blocking_timeout=1.2))
        waiters = self.locks.call("GET", f"/v1/locks/{self.key}")[1]["waiters"]
        self.assertEqual(waiters, [])
        threading.Timer(0.5, first.release).start()
        self.assertTrue(third.acquire(blocking_timeout=20))
        third.release()

    def test_nobody_gets_a_lock_between_two_threads(self) -> None:
        inside, most = 0, 0

        def work() -> None:
            nonlocal inside, most
            with self.locks.lock(self.key, blocking_timeout=60):
                inside += 1
                most = max(most, inside)
                time.sleep(0.02)
                inside -= 1

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(most, 1)

    def test_is_renewed_while_it_is_held(self) -> None:
        lock = self.held(timeout=3)
        time.sleep(5)
        self.assertTrue(lock.owned())
        self.assertFalse(self.locks.lock(self.key).acquire(blocking=False))
        lock.release()

    def test_control_without_renewals_it_is_lost_and_says_so(self) -> None:
        lock = self.held(timeout=1)
        hold = lock._owned("")
        hold._ended.set()  # the thread stops
        next_one = self.locks.lock(self.key)
        self.assertTrue(next_one.acquire(blocking_timeout=20))
        self.assertFalse(lock.owned())
        with self.assertRaises(LockNotOwnedError):
            lock.release()
        next_one.release()

    def test_a_broken_lock_sets_its_flag_and_its_release_raises(self) -> None:
        lock = self.held(timeout=2)
        body = {"reason": "a test", "fencingToken": lock.fencing_token, "drainMs": 0}
        self.locks.call("POST", f"/v1/locks/{self.key}/break", body)
        self.assertTrue(lock.lost.wait(10))
        self.assertFalse(lock.owned())
        with self.assertRaises(LockNotOwnedError):
            lock.extend(5)
        with self.assertRaises(LockNotOwnedError):
            lock.release()

    def test_waits_for_less_than_a_second(self) -> None:
        lock = self.held()
        with self.assertRaisesRegex(LockError, "within the time"), self.locks.lock(self.key, blocking_timeout=0.4):
            self.fail("it was acquired")
        lock.release()

    def test_a_lease_of_less_than_a_second_is_raised_to_one(self) -> None:
        lock = self.held(timeout=0.1)
        time.sleep(0.3)
        self.assertTrue(lock.owned())
        lock.release()

    def test_a_lock_without_a_timeout_is_held_until_it_is_released(self) -> None:
        lock = self.held(timeout=None)
        self.assertTrue(lock.owned())
        with self.assertRaisesRegex(LockError, "no timeout"):
            lock.extend(5)
        lock.release()

    def test_an_error_of_the_release_is_raised_or_not(self) -> None:
        with self.locks.lock(self.key, raise_on_release_error=False) as lock:
            lock.release()
        with self.assertRaises(LockError):
            with self.locks.lock(self.key) as lock:
                lock.release()

    def test_a_lock_is_each_thread_s_own_or_all_threads(self) -> None:
        for thread_local in (True, False):
            lock = self.held(thread_local=thread_local)
            seen: list[bool] = []
            thread = threading.Thread(target=lambda: seen.append(lock.owned()))  # noqa: B023
            thread.start()
            thread.join()
            self.assertEqual(seen, [not thread_local])
            lock.release()

    def test_a_with_block_that_is_left_in_another_thread_ends_its_own_hold(self) -> None:
        def in_a_thread(function: Callable[..., Any], *given: Any) -> Any:
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                return pool.submit(function, *given).result()

        nothing = (None, None, None)
        for thread_local in (True, False):
            lock = self.locks.lock(self.key, thread_local=thread_local)
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                for _ in range(2):
                    pool.submit(lock.__enter__).result()
                    in_a_thread(lock.__exit__, *nothing)
                    self.assertFalse(lock.locked())
            with self.assertRaisesRegex(LockError, "Cannot release an unlocked lock"):
                in_a_thread(lock.__exit__, *nothing)
        # A block that is left in its own thread ends no other thread's.
        lock = self.locks.lock(self.key, limit=2)
        in_a_thread(lock.__enter__)
        with lock:
            lock.release()
            self.assertTrue(lock.acquire())
        with self.assertRaisesRegex(LockError, "Cannot release an unlocked lock"), lock:
            lock.release()
        self.assertTrue(lock.locked())
        in_a_thread(lock.__exit__, *nothing)
        self.assertFalse(lock.locked())

    def test_a_semaphore_has_its_permits_and_shared_locks_exclude_the_others(self) -> None:
        for options, more, refused in [
            ({"limit": 3}, {"limit": 3, "permits": 2}, {"limit": 3}),
            ({"shared": True}, {"shared": True}, {}),
        ]:
            self.key = fresh("KIND")
            first, second = self.held(**options), self.held(**more)
            self.assertFalse(self.locks.lock(self.key, **refused).acquire(blocking=False))
            first.release()
            second.release()

    def test_a_set_is_all_of_its_keys_or_none_and_has_a_token_for_each(self) -> None:
        names = [self.key, fresh("OTHER")]
        with self.locks.lock_all(names, timeout=5) as both:
            self.assertEqual(list(both.fencing_tokens), names)
            self.assertEqual(both.fencing_token, max(both.fencing_tokens.values()))
            self.assertTrue(both.owned() and both.locked() and both.extend(60, replace_ttl=True))
            self.assertFalse(self.locks.lock(names[1]).acquire(blocking=False))
            self.assertFalse(self.locks.lock_all(names[::-1], blocking=False).acquire())
        self.assertFalse(both.locked())
        with self.locks.lock(self.key), self.assertRaises(LockError), self.locks.lock_all(names, blocking_timeout=0.2):
            pass
        with self.locks.lock_all(names[:1], shared=names[1:]), self.locks.lock(names[1], shared=True):
            self.assertFalse(self.locks.lock(self.key, shared=True).acquire(blocking=False))

    def test_a_set_is_granted_beside_callers_that_queue_for_each_of_its_keys(self) -> None:
        names, over = [self.key, fresh("OTHER")], threading.Event()

        def work(name: str) -> None:
            while not over.is_set():
                with self.locks.lock(name, timeout=5):
                    time.sleep(0.05)

        callers = [threading.Thread(target=work, args=(name,)) for name in names * 2]
        for caller in callers:
            caller.start()
        try:
            with self.locks.lock_all(names, blocking_timeout=30) as both:
                self.assertTrue(both.owned())
        finally:
            over.set()
            for caller in callers:
                caller.join()

    def test_extends_the_lease(self) -> None:
        lock = self.held(timeout=2)
        lock.extend(60)
        holder = self.locks.call("GET", f"/v1/locks/{self.key}")[1]["holders"][0]
        self.assertGreater(holder["remainingMs"], 50_000)
        lock.release()

    def test_a_lost_answer_makes_no_second_lock(self) -> None:
        locks = LosesAnswers()
        lock = locks.lock(self.key)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertEqual(len(self.locks.call("GET", f"/v1/locks/{self.key}")[1]["holders"]), 1)
        lock.release()
        self.assertFalse(lock.locked())

    def test_control_under_a_new_id_it_meets_its_own_hold(self) -> None:
        for locks, status in [(LosesAnswers(), 0), (self.locks, 423)]:
            with self.assertRaises(Problem) as refused:
                locks.call("PUT", f"/v1/locks/{self.key}/leases/{holdfast.lease_id()}", {}, again=False)
            self.assertEqual(refused.exception.status, status)

    def test_a_problem_says_who_holds_the_key_and_what_to_do(self) -> None:
        lock = self.held()
        with self.assertRaises(Problem) as refused:
            self.locks.call("PUT", f"/v1/locks/{self.key}/leases/{holdfast.lease_id()}", {})
        problem = refused.exception
        self.assertEqual((problem.status, problem.code, problem.definite, problem.retry), (423, "locked", True, "later"))
        self.assertEqual(problem.holders[0]["owner"], self.locks.owner)
        lock.release()

    def test_a_set_without_progress_is_lost_and_its_release_says_so(self) -> None:
        keys = [fresh("SET"), fresh("SET")]
        lock = self.locks.lock_all(keys, timeout=1, progress_timeout=1.5)
        self.assertTrue(lock.acquire())
        self.assertTrue(lock.progress())
        self.assertTrue(lock.lost.wait(20))
        self.assertEqual((lock.owned(), lock.progress()), (False, False))
        with self.locks.lock_all(keys, blocking_timeout=20):
            pass
        with self.assertRaisesRegex(LockNotOwnedError, r"no progress for \d+\.\d s; its progress_timeout is 1\.5 s"):
            lock.release()

    def test_refuses_by_name(self) -> None:
        with self.assertRaisesRegex(LockError, "timeout: 0 given"):
            self.locks.lock(self.key, timeout=0)
        with self.assertRaisesRegex(LockError, "progress_timeout: 29 given; it must be at least the timeout of 30 seconds"):
            self.locks.lock(self.key, progress_timeout=29)
        with self.assertRaisesRegex(LockError, "progress_timeout: 2 given; it must be at least the timeout of 3 seconds"):
            self.locks.run_once(self.key, lambda run: None, timeout=3, progress_timeout=2)
        with self.assertRaisesRegex(LockError, "Cannot release an unlocked lock"):
            self.locks.lock(self.key).release()
        with self.assertRaisesRegex(ValueError, "part is a number or a text"):
            key("ORDER", None)  # type: ignore[arg-type]

    def test_nobody_answers(self) -> None:
        nobody = Client("http://127.0.0.1:9", timeout=1)
        with self.assertRaises(Problem) as unanswered:
            nobody.lock(self.key).acquire(blocking=False)
        self.assertEqual((unanswered.exception.status, unanswered.exception.definite), (0, False))

    def test_makes_the_keys_of_the_sdk(self) -> None:
        self.assertEqual(key("ORDER", 1231), "ORDER_1231")
        self.assertEqual(key("a_b~c", "ä/"), "a~5Fb~7Ec_~C3~A4~2F")
        self.assertEqual(len(key("x" * 500)), 200)

    @unittest.skipUnless(redis, "there is no redis")
    def test_has_the_interface_of_redis_py(self) -> None:
        self.assertIs(LockError, redis.exceptions.LockError)
        self.assertIs(LockNotOwnedError, redis.exceptions.LockNotOwnedError)
        for theirs, ours in [(redis.lock.Lock, Lock), (redis.asyncio.lock.Lock, AsyncLock)]:
            for name in ["acquire", "release", "extend", "reacquire", "owned", "locked"]:
                self.assertEqual(list(inspect.signature(getattr(ours, name)).parameters), list(inspect.signature(getattr(theirs, name)).parameters))


class Runs(unittest.TestCase):
    def setUp(self) -> None:
        self.locks = Client(URL)
        self.key = fresh("RUN")

    def test_does_the_work_once_for_all_callers(self) -> None:
        charges: list[str] = []

        def work(run: Run) -> dict[str, int]:
            charges.append(run.idempotency_key)
            time.sleep(0.3)
            self.assertTrue(run.owned())
            return {"attempt": run.attempt}

        results: list[Any] = []
        ask: Callable[[], None] = lambda: results.append(self.locks.run_once(self.key, work, payload={"cents": 7}))
        threads = [threading.Thread(target=ask) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((results, charges), ([{"attempt": 1}] * 5, [self.key]))
        with self.assertRaises(Problem) as other:
            self.locks.run_once(self.key, work, payload={"cents": 8})
        self.assertEqual(other.exception.code, "fingerprint-mismatch")

    def test_an_error_is_the_next_attempt_and_a_final_one_is_replayed(self) -> None:
        def work(run: Run) -> None:
            raise ValueError("declined" if run.attempt == 2 else "down")

        is_final = lambda error: str(error) == "declined"
        with self.assertRaisesRegex(ValueError, "down"):
            self.locks.run_once(self.key, work, is_final=is_final)
        for _ in range(2):
            with self.assertRaisesRegex(RunFailed, "declined"):
                self.locks.run_once(self.key, work, is_final=is_final)

    def test_takes_over_from_a_dead_attempt_with_its_checkpoint(self) -> None:
        def dies(run: Run) -> None:
            run.save_checkpoint({"rows": 5000})
            run._hold._ended.set()
            raise SystemExit

        dead = Client(URL)
        says_nothing = mock.patch.object(holdfast._Hold, "record", lambda *_: iter(()))
        with says_nothing, self.assertRaises(SystemExit):
            dead.run_once(self.key, dies, timeout=1)
        self.assertEqual(self.locks.run_once(self.key, lambda run: [run.attempt, run.takeover, run.checkpoint]), [2, True, {"rows": 5000}])

    def test_is_kept_by_progress_and_by_checkpoints_and_lost_without(self) -> None:
        held: list[bool] = []

        def steps(run: Run) -> None:
            for step in range(3):
                time.sleep(1)
                run.save_checkpoint(step)
                time.sleep(1)
                held.append(run.progress())
            run.lost.wait(20)
            held.append(run.progress())

        self.locks.run_once(self.key, steps, timeout=1, progress_timeout=1.8)
        self.assertEqual(held, [True, True, True, False])

    def test_work_that_would_be_done_after_the_call_is_refused_or_a_failed_attempt_and_never_a_result(self) -> None:
        did: list[int] = []

        def generator(run: Run) -> Any:
            yield did.append(run.attempt)

        async def coroutine(run: Run) -> None:
            did.append(run.attempt)

        async def both(run: Run) -> Any:
            yield did.append(run.attempt)

        class Called:
            async def __call__(self, run: Run) -> None:
                did.append(run.attempt)

        for work, given in [
            (generator, "the generator function .*generator given"),
            (functools.partial(generator), "the generator function .* given"),
            (coroutine, "the coroutine function .*coroutine given"),
            (both, "the async generator function .*both given"),
            (Called(), "the coroutine function .*Called.* given"),
            (None, "None given"),
        ]:
            with self.assertRaisesRegex(TypeError, f"^work: {given}; it is a function that is done when it returns$"):
                self.locks.run_once(self.key, work)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "^is_final: the coroutine function .* given; it is a function that is done when it returns$"):
            self.locks.run_once(self.key, lambda run: None, is_final=coroutine)  # type: ignore[arg-type]
        later = [lambda run: generator(run), lambda run: coroutine(run), lambda run: both(run), lambda run: map(did.append, [1])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for work in [*later, lambda run: concurrent.futures.Future()]:
                with self.assertRaisesRegex(TypeError, "^work: returned a [a-zA-Z_]+, which would do the work after this call is over"):
                    self.locks.run_once(self.key, work, max_attempts=9)
        # What was refused began no attempt, and each of these results was one.
        self.assertEqual((self.locks.run_once(self.key, lambda run: run.attempt, max_attempts=9), did), (6, []))

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_a_child_that_the_work_forks_neither_ends_the_run_nor_saves_for_it(self) -> None:
        def returns(run: Run) -> str:
            return "of the child"

        def raises(run: Run) -> None:
            raise ZeroDivisionError("in the child")

        def saves(run: Run) -> None:
            run.save_checkpoint("of the child")

        def exits(run: Run) -> None:
            raise SystemExit(7)

        not_its_own = "LockNotOwnedError: RUN_.*: it belongs to the process that took it"
        ends: list[tuple[Callable[[Run], Any], str]] = [
            *[(returns, not_its_own), (saves, not_its_own)],
            *[(raises, "ZeroDivisionError: in the child"), (exits, "SystemExit: 7")],
        ]
        for child, told in ends:
            self.key = fresh("RUN")
            read, write = os.pipe()
            parent = os.getpid()

            def work(run: Run) -> list[Any]:
                pid = os.fork()
                if pid == 0:
                    return child(run)  # type: ignore[no-any-return]  # noqa: B023
                os.waitpid(pid, 0)
                return [run.owned(), self.locks.call("GET", f"/v1/runs/{self.key}")[1]["state"], run.checkpoint]

            said = "nothing"
            try:
                result = self.locks.run_once(self.key, work, is_final=lambda error: True)
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            finally:
                if os.getpid() != parent:
                    os.write(write, said.encode())
                    os._exit(0)
            os.close(write)
            with os.fdopen(read) as pipe:
                self.assertRegex(pipe.read(), f"^{told}$")
            self.assertEqual((result, self.locks.run_once(self.key, lambda run: "another attempt")), ([True, "running", None],) * 2)

    def test_lost_answers_make_no_second_run(self) -> None:
        calls: list[int] = []
        self.assertEqual(LosesAnswers().run_once(self.key, lambda run: calls.append(run.attempt)), None)
        self.assertEqual((self.locks.run_once(self.key, lambda run: calls.append(run.attempt)), calls), (None, [1]))


    def test_a_run_that_was_tried_too_often_names_its_key_and_the_options_of_this_client(self) -> None:
        def fails(run: Run) -> None:
            raise RuntimeError("down")

        with self.assertRaises(RuntimeError):
            self.locks.run_once(self.key, fails, max_attempts=1)
        with self.assertRaises(Problem) as refused:
            self.locks.run_once(self.key, fails, max_attempts=1)
        self.assertRegex(str(refused.exception), f"^{self.key}: attempts-exhausted: .*max_attempts=1 .*is_final")

    def test_every_problem_names_its_key(self) -> None:
        locks, nobody = self.locks, Client("http://127.0.0.1:9", timeout=0.2)
        with locks.lock(self.key, shared=True):
            for ask in [
                lambda: locks.lock(self.key, limit=2).acquire(blocking=False),
                lambda: locks.lock(self.key, permits=0).acquire(),
                lambda: locks.take(self.key, []),
                lambda: nobody.lock(self.key).locked(),
                lambda: nobody.take(self.key, [Rate(1, per=1)]),
                lambda: nobody.lock_all([self.key]).acquire(blocking=False),
                lambda: nobody.run_once(self.key, lambda run: None, blocking_timeout=0),
            ]:
                with self.assertRaises(Problem) as refused:
                    ask()
                self.assertRegex(str(refused.exception), f"^{self.key}: [a-z-]+: ")

    def test_an_outcome_that_nobody_answers_takes_no_longer_than_the_clients_timeout(self) -> None:
        locks = Client(URL, timeout=2)

        def work(run: Run) -> None:
            locks.url = "http://127.0.0.1:9"

        waits: list[float] = []
        until_over = holdfast._Hold._until_over
        noted = lambda hold, *request: (waits.append(request[3]), until_over(hold, *request))[1]
        with mock.patch.object(holdfast._Hold, "_until_over", noted), self.assertRaises(Problem):
            locks.run_once(self.key, work)
        self.assertEqual(waits, [2])


class Interrupted(unittest.TestCase):
    """Signals, whose handlers may raise at any line: Ctrl-C, a worker's time-out, a soft limit of Celery."""

    def setUp(self) -> None:
        self.locks = Client(URL)

    def interrupts(self, call: Callable[[], object], passes: int) -> str:
        """Raises KeyboardInterrupt at a line of the client, so many lines after the heartbeat is about to start. Returns the function's name;
        empty if the call ended before."""
        left, where = passes, ""

        def trace(frame: Any, event: str, _argument: Any) -> Any:
            nonlocal left, where
            code = frame.f_code
            if code.co_filename != holdfast.__file__:
                return None
            has_begun = left < passes or code.co_name == "keep"
            # No signal is handled at the line of a `try`, which does nothing.
            if event == "line" and has_begun and linecache.getline(code.co_filename, frame.f_lineno).strip() != "try:":
                left -= 1
                if left < 0:
                    where = str(code.co_name)
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        return where

    def assert_no_heartbeat(self, where: str) -> None:
        for thread in threading.enumerate():
            if thread.name == "holdfast-heartbeat":
                thread.join(5)
                self.assertFalse(thread.is_alive(), f"interrupted in {where}, it is renewed for as long as the process lives")

    def hold(self) -> None:
        with self.locks.lock(fresh("INTERRUPTED"), timeout=5):
            pass

    def test_a_lock_that_was_interrupted_at_any_line_is_not_renewed(self) -> None:
        for passes in itertools.count():
            where = self.interrupts(self.hold, passes)
            self.assert_no_heartbeat(where)
            if where == "":
                self.assertGreater(passes, 50)
                return

    def test_a_run_that_was_interrupted_is_not_renewed_and_its_work_that_was_done_is_not_done_again(self) -> None:
        again: list[str] = []
        for passes in itertools.count():
            name = fresh("INTERRUPTED")
            done: list[bool] = []
            where = self.interrupts(lambda: self.locks.run_once(name, lambda run: done.append(True)), passes)  # noqa: B023
            self.assert_no_heartbeat(where)
            if where == "":
                break
            # Around the work an interruption is one of the work, which is a failed attempt.
            if not done or where in ("_carry_out", "do", "_done"):
                continue
            try:
                self.locks.run_once(name, lambda run: done.append(True))  # noqa: B023
            except Problem as problem:
                self.assertEqual(problem.code, "result-omitted")
            again += [where] if len(done) > 1 else []
        self.assertGreater(passes, 50)
        self.assertEqual(again, ["_run_once"], "only before the line that notes that it is done")

    def test_the_end_of_the_process_waits_for_the_outcome_of_work_that_is_done(self) -> None:
        name = fresh("ENDS")
        program = """if True:
            import sys, time, holdfast
            class FirstIsLost(holdfast.Client):
                sent = 0
                def _send(self, method, path, *rest):
                    if path.endswith("/outcome"):
                        self.sent += 1
                        if self.sent == 1:
                            sys.exit(3)  # as the handler of a signal
                        time.sleep(0.5)
                    return super()._send(method, path, *rest)
            FirstIsLost(sys.argv[1]).run_once(sys.argv[2], lambda run: 1)"""
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(holdfast.__file__))}
        ended = subprocess.run([sys.executable, "-c", program, URL, name], env=environment, timeout=30)
        self.assertEqual(ended.returncode, 3)
        self.assertEqual(self.locks.run_once(name, lambda run: 2, blocking_timeout=0), 1)

    def test_the_exception_of_a_handler_during_a_request_is_raised_and_is_no_answer(self) -> None:
        class SoftLimit(Exception):
            pass

        send = holdfast.OPENER.open

        def interrupted(*request: Any, **options: Any) -> Any:
            # Handlers run in the main thread alone.
            if threading.current_thread() is threading.main_thread():
                raise SoftLimit
            return send(*request, **options)

        with mock.patch.object(holdfast.OPENER, "open", interrupted):
            for ask in (self.hold, lambda: self.locks.run_once(fresh("SOFT"), lambda run: 1)):
                self.assertRaises(SoftLimit, ask)


class Limits(unittest.TestCase):
    def test_takes_and_says_when_there_is_room_again(self) -> None:
        locks, name = Client(URL), fresh("LIMIT")
        rates = [Rate(5, per=8)]  # Two at once.
        self.assertEqual([locks.take(name, rates), locks.take(name, rates)], [0, 0])
        with self.assertRaises(Problem) as refused:
            locks.take(name, rates)
        self.assertEqual((refused.exception.code, refused.exception.status), ("rate-limited", 429))
        self.assertGreater(locks.take(name, rates, blocking_timeout=5), 0)

    def test_charges_what_was_used_and_later_takes_wait_for_it(self) -> None:
        locks, name, rates = Client(URL), fresh("LIMIT"), [Rate(5, per=100, burst=5)]
        locks.take(name, rates)
        for cost in (5, 0, 5):
            locks.charge(name, rates, cost=cost)
        with self.assertRaises(Problem) as refused:
            locks.take(name, rates)
        self.assertEqual(refused.exception.code, "rate-limited")
        self.assertGreater(refused.exception.retry_after or 0, 100)

    def test_shuts_a_limit_for_all_its_users(self) -> None:
        locks, name, rates = Client(URL), fresh("LIMIT"), [Rate(5, per=8)]
        locks.shut(name, rates, seconds=60, reason="the partner asked")
        with self.assertRaises(Problem) as refused:
            Client(URL).take(name, rates)
        self.assertEqual(refused.exception.code, "rate-limited")
        self.assertGreater(refused.exception.retry_after or 0, 50)


class Tasks(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.locks = AsyncClient(URL)
        self.key = fresh("TASK")

    async def until_free(self) -> None:
        for _ in range(200):
            if not await AsyncClient(URL).lock(self.key).locked():
                return
            await asyncio.sleep(0.05)
        self.fail(f"{self.key} is still held")

    async def test_nobody_gets_a_lock_between_two_tasks(self) -> None:
        inside, most = 0, 0

        async def work() -> None:
            nonlocal inside, most
            async with self.locks.lock(self.key, blocking_timeout=60) as lock:
                self.assertTrue(await lock.owned())
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.02)
                inside -= 1

        await asyncio.gather(*(work() for _ in range(8)))
        self.assertEqual(most, 1)

    async def test_one_object_of_two_tasks_is_refused_by_name(self) -> None:
        lock = self.locks.lock(self.key, limit=2)
        granted, refused = await asyncio.gather(lock.acquire(), lock.acquire(), return_exceptions=True)
        self.assertEqual(granted, True)
        self.assertRegex(str(refused), "already held by this object, or asked for")
        await lock.release()
        self.assertFalse(await lock.locked())

    async def test_is_renewed_while_other_tasks_run(self) -> None:
        locks = [self.locks.lock(fresh("TASK"), timeout=6) for _ in range(20)]
        await asyncio.gather(*(lock.acquire() for lock in locks))
        await asyncio.sleep(8)
        self.assertEqual([await lock.owned() for lock in locks], [True] * 20)
        await asyncio.gather(*(lock.release() for lock in locks))

    async def test_a_loop_that_is_held_up_for_longer_than_a_lease_loses_it(self) -> None:
        lock = self.locks.lock(self.key, timeout=1)
        await lock.acquire()
        time.sleep(1.5)
        self.assertFalse(await lock.owned())
        await asyncio.wait_for(lock.lost.wait(), 10)
        with self.assertRaises(LockNotOwnedError):
            await lock.release()

    async def test_a_broken_lock_is_told_to_who_awaits_it(self) -> None:
        lock = self.locks.lock(self.key, timeout=2)
        await lock.acquire()
        told = asyncio.create_task(lock.lost.wait())
        await self.locks.call("POST", f"/v1/locks/{self.key}/break", {"reason": "a test", "fencingToken": lock.fencing_token, "drainMs": 0})
        await asyncio.wait_for(told, 10)

    async def test_without_a_heartbeat_it_is_told_at_its_end(self) -> None:
        lock = self.locks.lock(self.key, timeout=1)
        await lock.acquire()
        lock._owned("")._heartbeat.cancel()
        await asyncio.wait_for(lock.lost.wait(), 10)

    async def test_a_request_holds_up_no_other_task(self) -> None:
        self.locks = locks = Held()
        acquired = asyncio.create_task(locks.lock(self.key).acquire())
        await asyncio.sleep(0.05)
        locks.passes.set()
        self.assertTrue(await acquired)

    async def test_an_acquire_that_is_cancelled_is_cancelled_at_the_service(self) -> None:
        locks = Held()
        acquired = asyncio.create_task(locks.lock(self.key).acquire())
        await asyncio.sleep(0.05)
        acquired.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await acquired
        locks.passes.set()
        for _ in range(500):
            if len(locks.sent) == 2:
                break
            await asyncio.sleep(0.02)
        # Whichever comes first.
        self.assertEqual(sorted(locks.sent), ["DELETE", "PUT"])
        await self.until_free()

    async def test_a_release_that_is_cancelled_is_sent_all_the_same(self) -> None:
        locks = Held()
        locks.passes.set()
        lock = locks.lock(self.key, timeout=60)
        await lock.acquire()
        locks.fails = 1
        release = asyncio.create_task(lock.release())
        while locks.fails:
            await asyncio.sleep(0)
        release.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await release
        await self.until_free()

    async def test_work_that_is_cancelled_is_begun_again_at_once(self) -> None:
        async def work(run: AsyncRun) -> int:
            if run.attempt == 1:
                await run.save_checkpoint("half")
                begun.set()
                await asyncio.sleep(60)
            self.assertEqual(run.checkpoint, "half")
            return run.attempt

        begun = asyncio.Event()
        first = asyncio.create_task(self.locks.run_once(self.key, work))
        await begun.wait()
        first.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await first
        self.assertEqual([await self.locks.run_once(self.key, work) for _ in range(2)], [2, 2])

    async def test_awaits_work_that_can_be_awaited_and_refuses_a_generator(self) -> None:
        did: list[str] = []

        async def generator(run: AsyncRun) -> Any:
            yield did.append("generator")

        with self.assertRaisesRegex(TypeError, "^work: the async generator function .* given; it is a function that .* returns or was awaited$"):
            await self.locks.run_once(self.key, generator)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "^work: returned a async_generator, which"):
            await self.locks.run_once(self.key, lambda run: generator(run))  # type: ignore[arg-type, return-value]
        for _ in range(2):
            self.assertEqual(await self.locks.run_once(self.key, lambda run: (did.append("plain"), run.attempt)[1]), 2)
        self.assertEqual(did, ["plain"])

    async def test_takes_without_holding_up_the_loop(self) -> None:
        rates = [Rate(1, per=1)]
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        turning = asyncio.create_task(turn())
        waited = await asyncio.gather(*(self.locks.take(self.key, rates, blocking_timeout=10) for _ in range(3)))
        turning.cancel()
        self.assertGreater(max(waited), 0)
        self.assertGreater(turns, 10)

    def test_a_loop_ends_during_a_heartbeat(self) -> None:
        async def leaves_it_held() -> None:
            locks = Held()
            locks.passes.set()
            lock = locks.lock(self.key, timeout=60)
            await lock.acquire()
            lock._owned("")._renew_after = 0.01
            locks.passes.clear()
            await asyncio.sleep(0.2)

        ended = threading.Event()
        threading.Thread(target=lambda: (asyncio.run(leaves_it_held()), ended.set()), daemon=True).start()
        self.assertTrue(ended.wait(20))


class Signed(unittest.TestCase):
    @unittest.skipUnless(find_spec("botocore"), "there is no botocore")
    def test_signs_with_service_and_region_of_the_url_and_the_credentials_of_botocore(self) -> None:
        os.environ.update(AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY="secret")
        for service, url in [
            ("execute-api", "https://abc.execute-api.eu-central-1.amazonaws.com"),
            ("lambda", "https://abc.lambda-url.eu-central-1.on.aws"),
        ]:
            sign = Client(url)._doors[0].sign
            assert sign is not None
            headers = sign("PUT", f"{url}/v1/locks/a", b"{}", {"content-type": "application/json"})
            scope = f"eu-central-1/{service}/aws4_request"
            self.assertRegex(headers["Authorization"], f"^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/[0-9]{{8}}/{scope}")

    @unittest.skipUnless(find_spec("botocore"), "there is no botocore")
    def test_says_whether_it_lacks_a_region_or_credentials_and_reads_the_regions_variable_of_the_other_sdks(self) -> None:
        keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}
        alone = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true"}
        own = "https://locks.example.com"
        for environment, url, lacks in [
            (keys, own, "no Region for locks.example.com: set AWS_REGION"),
            ({"AWS_REGION": "eu-west-1"}, own, "no credentials: set AWS_ACCESS_KEY_ID"),
            ({}, "https://abc.execute-api.eu-central-1.amazonaws.com", "no credentials: set AWS_ACCESS_KEY_ID"),
        ]:
            with mock.patch.dict(os.environ, {**alone, **environment}, clear=True), self.assertRaisesRegex(ValueError, lacks):
                Client(url, sign=True)
        with mock.patch.dict(os.environ, {**alone, **keys, "AWS_REGION": "eu-west-1"}, clear=True):
            sign = Client(own, sign=True)._doors[0].sign
            assert sign is not None
            self.assertIn("/eu-west-1/execute-api/", sign("GET", own, None, {})["Authorization"])

    @unittest.skipIf(find_spec("botocore"), "there is botocore")
    def test_says_that_it_needs_botocore_to_sign(self) -> None:
        with self.assertRaisesRegex(ValueError, "abc.lambda-url.eu-central-1.on.aws needs signed requests, for which botocore"):
            Client("https://abc.lambda-url.eu-central-1.on.aws")

    def test_signs_by_itself_for_the_hosts_of_aws_alone_and_never_beside_a_token(self) -> None:
        for url in [URL, "https://locks.example.com", "https://execute-api.example.com", "https://a.execute-api.b.amazonaws.com.example.org"]:
            self.assertIsNone(Client(url)._doors[0].sign)
        self.assertIsNone(Client("https://abc.execute-api.eu-central-1.amazonaws.com", token="jwt")._doors[0].sign)

    def test_sends_a_token_and_reads_what_a_gateway_answers_by_itself(self) -> None:
        seen: list[str] = []

        class Gateway(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append(self.headers["authorization"])
                self.send_response(403)
                self.end_headers()
                self.wfile.write(json.dumps({"message": "Forbidden"}).encode())

            def log_message(self, *_: Any) -> None: ...

        server = http.server.HTTPServer(("127.0.0.1", 0), Gateway)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with self.assertRaises(Problem) as refused:
            Client(f"http://127.0.0.1:{server.server_port}", token=lambda: "jwt").lock("a").locked()
        server.shutdown()
        server.server_close()
        self.assertEqual((refused.exception.status, refused.exception.definite, seen), (403, True, ["Bearer jwt"]))


NOBODY = "http://127.0.0.1:9"


class Slow(unittest.TestCase):
    def test_an_answer_that_comes_byte_by_byte_is_none_at_the_end_of_the_timeout(self) -> None:
        over = threading.Event()
        body = b"HTTP/1.1 %d OK\r\ncontent-type: application/problem+json\r\ncontent-length: 1000000\r\n\r\n{"
        for head in [b"HTTP/1.1 200 OK\r\nx-more: ", body % 200, body % 503]:
            with socket.create_server(("127.0.0.1", 0)) as server:

                def trickle() -> None:
                    connection = server.accept()[0]  # noqa: B023
                    with connection:
                        connection.recv(65_536)
                        connection.sendall(head)  # noqa: B023
                        # Each byte comes sooner than a timeout.
                        while not over.wait(0.05):
                            try:
                                connection.sendall(b" ")
                            except OSError:
                                return

                threading.Thread(target=trickle, daemon=True).start()
                answered = threading.Event()

                def ask(locks: Client) -> None:
                    with self.assertRaises(Problem) as refused:
                        locks.call("GET", "/v1/locks/a", again=False)
                    self.assertEqual((refused.exception.code, refused.exception.definite), ("unavailable", False))
                    answered.set()  # noqa: B023

                threading.Thread(target=ask, args=(Client(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.5),), daemon=True).start()
                self.assertTrue(answered.wait(20), head)
        over.set()


class Doors(unittest.TestCase):
    def test_goes_on_at_the_second_door_whose_table_lists_the_first_and_lets_the_first_rest(self) -> None:
        for listed in [NOBODY, f"{NOBODY}/"]:
            locks = TwoDoors(NOBODY, [listed, URL])
            for _ in range(5):
                with locks.lock(fresh("DOOR")) as lock:
                    self.assertTrue(lock.owned())
            self.assertEqual(locks.run_once(fresh("DOOR"), lambda run: "done"), "done")
            name = fresh("DOOR")
            for _ in range(2):
                locks.take(name, [Rate(2, per=3600, burst=2)])
            with self.assertRaises(Problem):
                locks.take(name, [Rate(2, per=3600, burst=2)])
            self.assertEqual([door for door, _ in locks.sent].count("first"), holdfast.DOOR_FAILURES)
            self.assertEqual(locks.sent.count(("second", "health")), 1)

    def test_a_silent_door_costs_one_short_attempt_a_call(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            first = f"http://127.0.0.1:{silent.getsockname()[1]}"
            locks = TwoDoors(first, [first])
            locks._doors[1].is_proven = True
            with mock.patch.object(holdfast, "SILENT_SEC", 0.1), locks.lock(fresh("DOOR")):
                pass
        self.assertEqual([door for door, path in locks.sent if path == "locks"], ["first", "second", "first", "second"])

    def test_never_asks_a_door_for_a_lock_whose_table_does_not_list_the_first(self) -> None:
        for listed in [[], [URL], [f"{NOBODY}9"]]:
            locks = TwoDoors(NOBODY, listed)
            with self.assertRaises(Problem) as refused:
                locks.lock(fresh("DOOR")).acquire(blocking=False)
            self.assertEqual(refused.exception.code, "unavailable")
            self.assertEqual({path for door, path in locks.sent if door == "second"}, {"health"})

    def test_takes_a_list_or_commas_and_no_empty_url(self) -> None:
        for url in ["http://a,http://b/", ["http://a", "http://b/"]]:
            self.assertEqual([door.url for door in Client(url)._doors], ["http://a", "http://b"])
        for url in [["http://a", ""], "http://a,", ","]:
            with self.assertRaisesRegex(ValueError, "url: name the service"):
                Client(url)


if __name__ == "__main__":
    unittest.main()
