"""The driver of the Python client for the suite of scenes (docs/write-a-client.md)."""

import asyncio
import json
import multiprocessing
import queue
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple
from urllib.parse import unquote

import holdfast
from holdfast import Client, LockError, LockNotOwnedError, Problem, Rate, RunFailed

TOKEN = "scripted-token-0123456789"
UNUSUAL: Dict[str, Callable[[], Any]] = {"unkeepable": lambda: {1, 2}, "large": lambda: "x" * 300_000, "unfinished": lambda: (one for one in [1])}
real_time = time.time


class Thrown(Exception):
    """The work's own error."""


class State:
    client: Client
    token: Optional[str] = TOKEN
    holds: Dict[str, Any] = {}
    works: Dict[str, "queue.Queue[Any]"] = {}
    ends: Dict[str, "queue.Queue[str]"] = {}


def token() -> str:
    if State.token is None:
        raise RuntimeError("the token's server is gone")
    return State.token


def seconds(word: str) -> float:
    return float(word.rstrip("s"))


def after(words: List[str], name: str) -> str:
    return words[words.index(name) + 1]


def refused(error: BaseException) -> str:
    if isinstance(error, (KeyboardInterrupt, asyncio.CancelledError)):
        return "interrupted"
    if isinstance(error, (Thrown, RunFailed)):
        return f"failed {json.dumps(str(error))}"
    if isinstance(error, LockNotOwnedError):
        return "lost"
    text = " ".join(f"{error} {error.__cause__ or ''}".split())
    if isinstance(error, Problem):
        if error.code == "run-in-progress":
            return "busy"
        return f"refused {error.code} {'definite' if error.definite else 'perhaps'} {text}"
    return f"refused {'invalid-request' if isinstance(error, (LockError, ValueError, TypeError)) else type(error).__name__} definite {text}"


def opened(words: List[str]) -> Optional[Callable[[], str]]:
    """Forgets what was, and returns the function for the token of a new client."""
    time.time = real_time
    State.token, State.holds = TOKEN, {}
    return token if "token" in words else None


def at_once(verb: str, name: str, line: str) -> str:
    """Carries out what asks the service nothing."""
    if verb == "key":
        return f"key {holdfast.key(*json.loads(line[4:]))}"
    if verb == "token":
        State.token = None if name == "fails" else name
    else:
        by = seconds(name)
        time.time = lambda: real_time() + by
    return "ok"


def asked_for(client: Any, verb: str, name: str, words: List[str]) -> Any:
    times = {"timeout": seconds(words[0]), "blocking_timeout": seconds(after(words, "wait"))}
    is_shared = "shared" in words
    if verb == "acquire":
        progress = seconds(after(words, "progress")) if "progress" in words else None
        limit = int(after(words, "limit")) if "limit" in words else 1
        return client.lock(name, **times, shared=is_shared, limit=limit, progress_timeout=progress)
    names = name.split(",")
    return client.lock_all([] if is_shared else names, shared=names if is_shared else [], **times)


def granted(lock: Any) -> str:
    return f"granted {' '.join(map(str, lock.fencing_tokens.values()))}"


def given(line: str) -> Dict[str, Any]:
    return {"payload": json.loads(line.split(" payload ", 1)[1])} if " payload " in line else {}


def returned(words: List[str], line: str) -> Any:
    return UNUSUAL[words[1]]() if words[0] == "as" else json.loads(line.split(" ", 2)[2])


def result(value: Any) -> str:
    return f"result {json.dumps(value, separators=(',', ':'))}"


def run_once(name: str, words: List[str], line: str) -> str:
    reply: "queue.Queue[str]" = queue.Queue()
    work_ends: "queue.Queue[Any]" = queue.Queue()
    State.works[name] = work_ends
    State.ends[name] = reply

    def work(run: Any) -> Any:
        State.holds[name] = run
        reply.put(f"began {run.attempt} {'yes' if run.owned() else 'no'}")
        how = work_ends.get()
        if isinstance(how, Thrown):
            raise how
        return how

    def all_of_it() -> None:
        try:
            value = State.client.run_once(
                name,
                work,
                timeout=seconds(words[0]),
                blocking_timeout=seconds(after(words, "wait")),
                is_final=lambda error: str(error) == "final",
                **given(line),
            )
            reply.put(result(value))
        except BaseException as error:
            reply.put(refused(error))

    threading.Thread(target=all_of_it, daemon=True).start()
    return reply.get()


def replied(carry_out: Callable[..., str], line: str) -> str:
    try:
        return carry_out(*split(line), line)
    except BaseException as error:
        return refused(error)


def in_child(carry_out: Callable[..., str], line: str) -> str:
    """Carries a command out in a child process, which has all that this one has, and ends."""
    fork = multiprocessing.get_context("fork")
    replies = fork.SimpleQueue()
    child = fork.Process(target=lambda: replies.put(replied(carry_out, line)))
    child.start()
    child.join(30)
    child.kill()
    return str(replies.get())


def in_thread(line: str) -> str:
    replies: "queue.Queue[str]" = queue.Queue()
    threading.Thread(target=lambda: replies.put(replied(carry_out, line))).start()
    return replies.get()


def carry_out(verb: str, name: str, words: List[str], line: str) -> str:
    if verb == "in_child":
        return in_child(carry_out, line.split(" ", 1)[1])
    if verb == "in_thread":
        return in_thread(line.split(" ", 1)[1])
    if verb == "open":
        State.client = Client(name, token=opened(words))
    elif verb in ("token", "clock", "key"):
        return at_once(verb, name, line)
    elif verb in ("acquire", "acquire_all"):
        lock = asked_for(State.client, verb, name, words)
        if not lock.acquire():
            return "busy"
        State.holds[name] = lock
        return granted(lock)
    elif verb == "held?":
        return "yes" if name in State.holds and State.holds[name].owned() else "no"
    elif verb == "lost?":
        return "yes" if name in State.holds and State.holds[name].lost.is_set() else "no"
    elif verb == "progress":
        return "yes" if State.holds[name].progress() else "no"
    elif verb == "extend":
        State.holds[name].extend(seconds(words[0]), replace_ttl=True)
    elif verb == "release":
        State.holds[name].release()
        return "released"
    elif verb == "run_once":
        return run_once(name, words, line)
    elif verb == "return":
        State.works[name].put(returned(words, line))
        return State.ends[name].get()
    elif verb == "throw":
        State.works[name].put(Thrown(words[0]))
        return State.ends[name].get()
    elif verb == "checkpoint":
        State.holds[name].save_checkpoint(json.loads(line.split(" ", 2)[2]))
        return "saved"
    elif verb == "checkpoint?":
        return f"checkpoint {json.dumps(State.holds[name].checkpoint)}"
    elif verb == "take":
        count, per = words[0].split("/")
        State.client.take(name, [Rate(int(count), seconds(per))], blocking_timeout=seconds(after(words, "wait")))
        return "taken"
    elif verb == "close":
        for hold in list(State.holds.values()):
            if isinstance(hold, holdfast.Lock) and hold.owned():
                hold.release()
    else:
        return "can't"
    return "ok"


def split(line: str) -> Tuple[str, str, List[str]]:
    verb, name, *words = [*line.split(" "), ""]
    return verb, unquote(name) if verb != "key" else "", [word for word in words if word]


def main() -> None:
    while True:
        try:
            line = sys.stdin.readline().rstrip("\n")
        except KeyboardInterrupt:
            continue
        if not line:
            break
        print(replied(carry_out, line), flush=True)


if __name__ == "__main__":
    main()
