"""The driver of the Python client for asyncio (docs/write-a-client.md)."""

import asyncio
import json
import os
import signal
import threading
from typing import Any, Dict, List

from driver import State, Thrown, after, asked_for, at_once, given, granted, in_child, opened, refused, result, returned, seconds, split
from holdfast import AsyncClient, AsyncLock, Rate

client: AsyncClient
#: The work of each run ends with what its future gets.
works: Dict[str, "asyncio.Future[Any]"] = {}
runs: Dict[str, "asyncio.Task[str]"] = {}


async def run_once(name: str, words: List[str], line: str) -> str:
    loop = asyncio.get_running_loop()
    began: "asyncio.Future[str]" = loop.create_future()
    works[name] = loop.create_future()

    async def work(run: Any) -> Any:
        State.holds[name] = run
        began.set_result(f"began {run.attempt} {'yes' if run.owned() else 'no'}")
        how = await works[name]
        if isinstance(how, Thrown):
            raise how
        return how

    async def all_of_it() -> str:
        times = {"timeout": seconds(words[0]), "blocking_timeout": seconds(after(words, "wait"))}
        try:
            return result(await client.run_once(name, work, is_final=lambda error: str(error) == "final", **times, **given(line)))
        except BaseException as error:
            return refused(error)

    runs[name] = asyncio.create_task(all_of_it())
    await asyncio.wait([began, runs[name]], return_when=asyncio.FIRST_COMPLETED)
    return began.result() if began.done() else runs[name].result()


async def carry_out(verb: str, name: str, words: List[str], line: str) -> str:
    global client
    if verb == "in_child":
        return in_child(lambda *command: asyncio.run(carry_out(*command)), line.split(" ", 1)[1])
    if verb == "open":
        client = AsyncClient(name, token=opened(words))
    elif verb in ("token", "clock", "key"):
        return at_once(verb, name, line)
    elif verb in ("acquire", "acquire_all"):
        lock = asked_for(client, verb, name, words)
        if not await lock.acquire():
            return "busy"
        State.holds[name] = lock
        return granted(lock)
    elif verb == "held?":
        hold = State.holds.get(name)
        return "yes" if hold and (await hold.owned() if isinstance(hold, AsyncLock) else hold.owned()) else "no"
    elif verb == "lost?":
        return "yes" if name in State.holds and State.holds[name].lost.is_set() else "no"
    elif verb == "progress":
        return "yes" if State.holds[name].progress() else "no"
    elif verb == "extend":
        await State.holds[name].extend(seconds(words[0]), replace_ttl=True)
    elif verb == "release":
        await State.holds[name].release()
        return "released"
    elif verb == "run_once":
        return await run_once(name, words, line)
    elif verb in ("return", "throw"):
        works[name].set_result(returned(words, line) if verb == "return" else Thrown(words[0]))
        return await runs[name]
    elif verb == "checkpoint":
        await State.holds[name].save_checkpoint(json.loads(line.split(" ", 2)[2]))
        return "saved"
    elif verb == "checkpoint?":
        return f"checkpoint {json.dumps(State.holds[name].checkpoint)}"
    elif verb == "take":
        count, per = words[0].split("/")
        await client.take(name, [Rate(int(count), seconds(per))], blocking_timeout=seconds(after(words, "wait")))
        return "taken"
    elif verb == "close":
        for hold in list(State.holds.values()):
            if isinstance(hold, AsyncLock) and await hold.owned():
                await hold.release()
    else:
        return "can't"
    return "ok"


async def main() -> None:
    loop = asyncio.get_running_loop()
    lines: "asyncio.Queue[str]" = asyncio.Queue()

    def read() -> None:
        # Not sys.stdin: a child closes it at its end, and would wait for this thread of its parent.
        with open(os.dup(0)) as stdin:
            for line in stdin:
                loop.call_soon_threadsafe(lines.put_nowait, line.rstrip("\n"))
        loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        call = asyncio.ensure_future(carry_out(*split(line), line))
        loop.add_signal_handler(signal.SIGINT, call.cancel)
        try:
            reply = await call
        except BaseException as error:
            reply = refused(error)
        print(reply, flush=True)


asyncio.run(main())
