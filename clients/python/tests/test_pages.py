"""The programs of docs/python.md, run as they stand there, against a local service."""

import json
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
        self.names["charge"] = lambda run_key, cents: (self.did.append((run_key, cents)), f"receipt of {cents}")[1]
        self.names["parts"] = lambda day: [1, 2]
        for program in page()[:-3]:
            exec(program, self.names)
        self.account = uuid.uuid4().hex

    def handle(self, context: Context) -> None:
        self.names["handler"]({"account": self.account, "steps": ["a", "b"]}, context)

    def pay(self, cents: int, *seconds: float) -> Any:
        return self.names["pay_order"]({"order": self.account, "cents": cents}, Context(*(seconds or (60,))))

    def test_an_order_is_paid_once_and_another_amount_is_refused(self) -> None:
        self.assertEqual([self.pay(500), self.pay(500)], ["receipt of 500"] * 2)
        with self.assertRaisesRegex(holdfast.Problem, "fingerprint-mismatch"):
            self.pay(700)
        self.assertEqual(self.did, [(f"PAY_{self.account}", 500)])

    def test_a_payment_begins_with_time_for_it_alone_and_a_declined_card_is_not_tried_again(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "may not begin"):
            self.pay(500, 60, 4)

        def declines(*what: Any) -> None:
            self.did.append(what)
            raise self.names["Declined"]("no money")

        self.names["charge"] = declines
        for _ in range(2):
            with self.assertRaisesRegex(holdfast.RunFailed, "no money"):
                self.pay(500)
        self.assertEqual(len(self.did), 1)

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
        # Sent twice by their producer.
        events = [{"Records": [{"messageId": name, "body": json.dumps({"id": self.account})}]} for name in ("m-1", "m-2")]
        begun, ends = threading.Event(), threading.Event()
        self.names["ship"] = lambda *what: (self.did.append(what), begun.set(), ends.wait(20))[0]
        handled: List[Any] = []
        first = threading.Thread(target=lambda: handled.append(self.names["on_messages"](events[0], None)))
        first.start()
        begun.wait(20)
        with self.assertLogs(level="ERROR") as logged:
            self.assertEqual(self.names["on_messages"](events[1], None), {"batchItemFailures": [{"itemIdentifier": "m-2"}]})
        self.assertRegex(logged.output[0], "message m-2(.|\n)*run-in-progress")
        ends.set()
        first.join()
        again = self.names["on_messages"](events[1], None)
        self.assertEqual((handled, again, len(self.did)), ([{"batchItemFailures": []}], {"batchItemFailures": []}, 1))

    def test_a_task_writes_under_the_lock_and_a_schedule_once(self) -> None:
        self.names["load"]("2026-11-29")
        self.names["nightly"](self.account)
        self.names["nightly"](self.account)
        self.assertEqual([what[0] for what in self.did], [1, 2, self.account])

    def test_brings_what_it_has_under_a_lock_that_shows_progress(self) -> None:
        self.names["bring"]("2026-11-29")
        self.assertEqual([what[0] for what in self.did], [1, 2])

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
