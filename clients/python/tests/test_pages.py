"""The programs of docs/python.md, run as they stand there, against a local service."""

import os
import re
import threading
import unittest
import uuid
from typing import Any, Dict, List

import holdfast

PAGE = os.path.join(os.path.dirname(__file__), "../../../docs/python.md")


class Context:
    """The context of an invocation, whose time is as the test says."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = list(seconds)

    def get_remaining_time_in_millis(self) -> int:
        return round((self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]) * 1000)


def page() -> List[str]:
    with open(PAGE) as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)


class Pages(unittest.TestCase):
    def setUp(self) -> None:
        self.did: List[Any] = []
        note = lambda *what: self.did.append(what)
        self.names: Dict[str, Any] = {name: note for name in ("book", "ship", "write", "report", "call_partner", "read_report", "transfer")}
        self.names["parts"] = lambda day: [1, 2]
        for program in page()[:-3]:
            # There is nothing to sign for on localhost.
            exec(program.replace("sign=True", ""), self.names)
        self.account = uuid.uuid4().hex

    def handle(self, context: Context) -> None:
        self.names["handler"]({"account": self.account, "steps": ["a", "b"]}, context)

    def test_a_handler_does_its_steps_and_releases(self) -> None:
        self.handle(Context(60))
        self.handle(Context(60))
        self.assertEqual([step for step, _ in self.did], ["a", "b", "a", "b"])

    def test_a_handler_begins_no_step_without_time_for_it(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "may not begin"):
            self.handle(Context(60, 60, 1))
        self.assertEqual([step for step, _ in self.did], ["a"])

    def test_a_handler_waits_no_longer_than_leaves_time_for_the_work(self) -> None:
        with holdfast.Client().lock(holdfast.key("ACCOUNT", self.account)), self.assertRaises(holdfast.LockError):
            self.handle(Context(5.5))
        self.assertEqual(self.did, [])

    def test_a_message_is_done_once_and_one_under_way_goes_back(self) -> None:
        message = {"messageId": self.account, "body": "x"}
        begun, ends = threading.Event(), threading.Event()
        self.names["ship"] = lambda *what: (self.did.append(what), begun.set(), ends.wait(20))[0]
        handled: List[Any] = []
        first = threading.Thread(target=lambda: handled.append(self.names["on_messages"]({"Records": [message]}, None)))
        first.start()
        begun.wait(20)
        self.assertEqual(self.names["on_messages"]({"Records": [message]}, None), {"batchItemFailures": [{"itemIdentifier": self.account}]})
        ends.set()
        first.join()
        again = self.names["on_messages"]({"Records": [message]}, None)
        self.assertEqual((handled, again, len(self.did)), ([{"batchItemFailures": []}], {"batchItemFailures": []}, 1))

    def test_a_task_writes_under_the_lock_and_a_schedule_once(self) -> None:
        self.names["load"]("2026-11-29")
        self.names["nightly"](self.account)
        self.names["nightly"](self.account)
        self.assertEqual([what[0] for what in self.did], [1, 2, self.account])

    def test_takes_permits_and_shares(self) -> None:
        exec(page()[-3], self.names)
        self.assertEqual(self.did, [(), (), ()])

    def test_takes_several_keys(self) -> None:
        exec(page()[-2], self.names)
        self.assertEqual([list(tokens) for (tokens,) in self.did], [["ACCOUNT_1", "ACCOUNT_2", "RATES"]])

    def test_stands_again_after_a_term_that_ended_or_was_lost(self) -> None:
        exec(page()[-1], self.names)
        terms: List[int] = []

        def lead(lock: holdfast.Lock) -> None:
            terms.append(lock.fencing_token)
            if len(terms) == 2:
                raise holdfast.LockNotOwnedError("lost")
            if len(terms) == 3:
                raise StopIteration

        with self.assertRaises(StopIteration):
            self.names["stand"](lead)
        self.assertEqual(terms, sorted(set(terms)))


if __name__ == "__main__":
    unittest.main()
