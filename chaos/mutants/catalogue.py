"""The mutants, by promise. A change to the code may move what they edit: then they are adapted, never dropped."""

from chaos.mutants.background import OWNED, TOLD_ONCE
from chaos.mutants.groups import GROUPED
from chaos.mutants.mutant import Chaos, Edit, Mutant, Test

ACCEPTED_MEANS_KEPT = (
    Mutant(
        "P1",
        "a turn that its living worker does not run is left there",
        (
            Edit(
                "src/outlast/duties/unrun_turns.py",
                "        for fence in unrun & self._seen:\n",
                "        for fence in frozenset[Fence]():\n",
            ),
        ),
        Test("tests/integration/test_jobs.py::test_a_turn_is_found_whose_attempt_broke_down_here"),
    ),
    Mutant(
        "P1",
        "an answer is given before the commit",
        (
            Edit(
                "src/outlast/store/sqlite/database.py",
                "            job.error = self._shutdown_deadline.mark(translate(exc))\n\n    def _watch",
                "            job.error = self._shutdown_deadline.mark(translate(exc))\n"
                "        job.loop.call_soon_threadsafe(job.resolve, self._outbox)\n\n    def _watch",
            ),
        ),
        Test("tests/contracts/test_transactions.py::test_a_commit_that_fails_is_not_acknowledged"),
    ),
    Mutant(
        "P1",
        "inputs are marked delivered in a commit of their own, before the request",
        (
            Edit(
                "src/outlast/runs/turns/loop.py",
                "        def deliver(unit: Unit) -> list[Input] | turn_failure.Failure | None:\n"
                "            if self.log.stop_reason is not None:\n"
                "                return None\n"
                "            if (over := self._over_its_ceiling(unit.now)) is not None:\n"
                "                return over\n"
                "            waiting = inputs.waiting_for(unit, self.claim.fence.session_id)\n",
                "        def take(unit: Unit) -> list[Input]:\n"
                "            found = inputs.waiting_for(unit, self.claim.fence.session_id)\n"
                "            due = due_at_boundary(found) if self.has_begun else due_at_start(found)\n"
                "            inputs.mark_delivered(unit, [each.id for each in due], self.claim.fence.turn_id, 0)\n"
                "            return found\n\n"
                '        taken = await self.log.commit("take", take)\n\n'
                "        def deliver(unit: Unit) -> list[Input] | turn_failure.Failure | None:\n"
                "            waiting = taken\n",
            ),
        ),
        Chaos("deliver", finds="lost"),
    ),
    Mutant(
        "P1",
        "two changes of one row go into one statement, of which only one is made",
        (
            Edit(
                "src/outlast/store/sql/batch.py",
                "return not self.touches(write.table) or (write.is_insert and self._only_inserts[write.table])",
                "return True",
            ),
        ),
        Test("tests/contracts/test_late_writes.py::test_rows_are_changed_in_the_order_in_which_it_was_said"),
    ),
    Mutant(
        "P1",
        "a lost commit is taken for another transaction that was given its number after a crash",
        (
            Edit(
                "src/outlast/store/postgres/database.py",
                'found == "committed" and unit.stands(connection)',
                'found == "committed"',
            ),
        ),
        Test("tests/contracts/test_lost_answers.py::test_a_commit_that_a_crashed_server_forgot_is_made_again"),
    ),
)

FINISHED_MEANS_NEVER_REDONE = (
    Mutant(
        "P2",
        "tools run before the response that asked for them is committed",
        (
            Edit(
                "src/outlast/runs/turns/loop.py",
                "        calls = history.calls_of(response)\n",
                "        calls = history.calls_of(response)[:0]\n",
            ),
        ),
        Chaos("tool", finds="repeated", kills=10),
    ),
    Mutant(
        "P2",
        "a worker that was frozen starts its tools without asking whether they are still its own",
        (
            Edit(
                "src/outlast/calls/call.py",
                "            await self.confirm()\n",
                "            pass\n",
            ),
        ),
        Test(
            "tests/integration/test_workers.py"
            "::test_a_worker_that_froze_before_its_tools_does_not_start_them_after_others_told_of_them"
        ),
    ),
    Mutant(
        "P2",
        "a call that was in flight is simply run again",
        (
            Edit(
                "src/outlast/calls/hook.py",
                "        elif self.open_calls.was_in_flight(call_id):\n",
                "        elif False:\n",
            ),
        ),
        Chaos("tool", finds="repeated"),
    ),
    Mutant(
        "P2",
        "a call that ended is run again",
        (
            Edit(
                "src/outlast/calls/hook.py",
                "        if self.open_calls.is_answered(call_id) or",
                "        if",
            ),
        ),
        Test("tests/races/test_resumed_calls.py::test_a_call_that_ended_is_not_run_again_beside_one_in_flight"),
    ),
    Mutant(
        "P2",
        "a call that ended is run again, seen by kills at the request",
        (
            Edit(
                "src/outlast/calls/hook.py",
                "        if self.open_calls.is_answered(call_id) or",
                "        if",
            ),
        ),
        Chaos("request", finds="repeated", kills=10),
    ),
    Mutant(
        "P2",
        "a resumed turn stores its response once more",
        (
            Edit(
                "src/outlast/runs/turns/loop.py",
                "is_replay = committed is not None or bool(history.open_calls(given))",
                "is_replay = committed is not None",
            ),
        ),
        Test("tests/races/test_resumed_calls.py::test_a_response_with_open_calls_is_stored_once"),
    ),
)

EVERY_END_IS_TOLD_ONCE = (
    Mutant(
        "P3",
        "the end of a turn is told in a second commit",
        (
            Edit(
                "src/outlast/store/unit.py",
                "        if self.committed.rows:\n            self.write",
                '        self.late = [row for row in self.committed.rows if row[2] == "turn.completed"]\n'
                "        self.committed.rows = [row for row in self.committed.rows if row not in self.late]\n"
                "        if self.committed.rows:\n            self.write",
            ),
            Edit(
                "src/outlast/store/sqlite/database.py",
                '        self._watch(batch, "after")\n',
                '        self._watch(batch, "after")\n'
                "        for job in batch:\n"
                "            if job.unit is not None and job.unit.late:\n"
                "                with connection.begin():\n"
                "                    _raw(connection).execute('BEGIN IMMEDIATE')\n"
                "                    _INSERT_EVENTS.run(connection, job.unit.late)\n",
            ),
            Edit(
                "src/outlast/store/sqlite/database.py",
                "from outlast.store.unit import Unit\n",
                "from outlast.store.unit import Unit, _INSERT_EVENTS\n",
            ),
        ),
        Chaos("turn.end", finds="untold"),
    ),
    Mutant(
        "P3",
        "inputs and wakes are marked delivered in a second commit, after the request",
        (
            Edit(
                "src/outlast/runs/turns/delivery.py",
                "        turn.deliver(unit, fence, [each], position)\n",
                "        continue\n",
            ),
            Edit(
                "src/outlast/runs/turns/loop.py",
                "        if due is None:\n            return False\n",
                "        if due is None:\n            return False\n"
                "        for each in due:\n"
                "            mark = lambda unit: turn.deliver(unit, self.claim.fence, [each], 0)\n"
                '            await self.log.commit("mark", mark)\n',
            ),
        ),
        Chaos("deliver", finds="repeated"),
    ),
)

NO_READER_HANGS_AND_NONE_MISSES = (
    Mutant(
        "P4",
        "a reader in the middle of a folded text gets all of it",
        (
            Edit(
                "src/outlast/events/fold.py",
                '    data["text"] = data["text"][end - data["offset"] :]\n',
                "",
            ),
        ),
        Test("tests/races/test_promises.py::test_a_reader_in_the_middle_of_a_folded_text_gets_just_the_rest"),
    ),
    Mutant(
        "P4",
        "a text is folded across what happened while the model spoke",
        (Edit("src/outlast/events/fold.py", "(is_full or _start(event) != _number(group[-1]) + 1)", "is_full"),),
        Test(
            "tests/races/test_promises.py"
            "::test_a_reader_that_stopped_between_two_deltas_of_a_folded_text_misses_nothing"
        ),
    ),
    Mutant(
        "P4",
        "the lost beginning of a response stays in the log",
        (
            Edit(
                "src/outlast/transitions/turns/turn_start.py",
                '        data["dropped"] = events.drop_parts(unit, session.id, row.id, after=after)\n',
                '        data["dropped"] = []\n',
            ),
        ),
        Test("tests/races/test_restart.py::test_half_an_answer_is_dropped_and_said_so"),
    ),
    Mutant(
        "P4",
        "a word that arrived as the turn was stopped stands in history and is told to nobody",
        (Edit("src/outlast/runs/turns/open_calls.py", "streaming.told_of(partial.parts)", "partial.parts"),),
        Test("tests/races/test_stop_races.py::test_log_and_history_agree_when_stop_meets_a_word_on_its_way"),
    ),
)

ONE_RUNNER = (
    Mutant(
        "P5",
        "a turn that another commit claims while it is asked for is run by nobody",
        (
            Edit(
                "src/outlast/runs/worker.py",
                "        return claimed or self._claimed.pop(turn_id, None)\n",
                "        return claimed or (None if is_free else self._claimed.pop(turn_id, None))\n",
            ),
        ),
        Test(
            "tests/races/test_parking_races.py"
            "::test_a_wake_that_is_due_in_the_moment_in_which_the_next_one_hurries_it[sqlite]"
        ),
    ),
    Mutant(
        "P5",
        "a superseded attempt goes on writing",
        (
            Edit(
                "src/outlast/runs/turns/turn_log.py",
                "            if found is None:\n",
                "            found = found or turns.MayWrite(None)\n            if not is_there:\n",
            ),
        ),
        Test("tests/races/test_promises.py::test_a_superseded_attempt_writes_nothing_more"),
    ),
    Mutant(
        "P5",
        "the session is read without its lock",
        (
            Edit(
                "src/outlast/store/unit.py",
                "tables.sessions.c.deleted_at.is_(None))\n    .with_for_update()\n",
                "tables.sessions.c.deleted_at.is_(None))\n",
            ),
        ),
        Test("tests/contracts/test_numbers.py::test_the_lock_serialises_those_who_read_in_order_to_decide"),
    ),
    Mutant(
        "P5",
        "a second process may run the work of the same file",
        (Edit("src/outlast/engines/embedded.py", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH | fcntl.LOCK_NB"),),
        Test("tests/races/test_promises.py::test_a_second_process_on_the_same_file_is_refused"),
    ),
)

STOPPING_STOPS = (
    Mutant(
        "P6",
        "what pydantic-ai forgets of a cancelled run goes on",
        (Edit("src/outlast/runs/turns/loop.py", "            await self.hook.end_tasks()\n", ""),),
        Test("tests/races/test_stop_races.py::test_nothing_goes_on_of_a_turn_that_is_cut_off_in_whatever_moment"),
    ),
    Mutant(
        "P6",
        "a running turn does not hear that it must stop",
        (
            Edit(
                "src/outlast/runs/turns/attempt.py",
                "            elif row.stop_requested_at is not None:\n",
                "            elif False:\n",
            ),
        ),
        Test("tests/behaviour/test_stop.py::test_stop_before_the_first_word"),
    ),
    Mutant(
        "P6",
        "a stop leaves the session open for what waits",
        (Edit("src/outlast/transitions/turn.py", '\n    turn_start.hold(unit, session, "stopped")\n', "\n"),),
        Test("tests/behaviour/test_stop.py::test_stop_holds_what_waits_until_the_owner_resumes"),
    ),
    Mutant(
        "P6",
        "a call that failed as its turn was stopped is told as unknown",
        (
            Edit(
                "src/outlast/calls/hook.py",
                "self.records.of(running.call_id).move(CallState.FAILED, clean.words_of(error, most=None))",
                "pass",
            ),
        ),
        Test("tests/races/test_stopped_calls.py::test_a_call_that_failed_before_the_stop_is_told_as_failed"),
    ),
    Mutant(
        "P6",
        "a stop between claim and attempt is noticed late",
        (
            Edit(
                "src/outlast/runs/worker.py",
                "            attempt.look()\n        return attempt\n",
                "            pass\n        return attempt\n",
            ),
        ),
        Test("tests/races/test_stop_races.py::test_a_stop_right_after_the_claim_is_noticed_at_once"),
    ),
    Mutant(
        "P6",
        "a stop of a turn that its making claimed is noticed late",
        (
            Edit(
                "src/outlast/engines/distributed.py",
                "self._worker.begin(each, may_be_stopped=True)",
                "self._worker.begin(each)",
            ),
        ),
        Test("tests/races/test_sequels.py::test_a_stop_that_comes_before_the_claim_is_known_here_stops_the_turn"),
    ),
    Mutant(
        "P6",
        "an interrupting message is told to the turn that it stops",
        (
            Edit(
                "src/outlast/runs/turns/turn_log.py",
                "            self.stop_reason, self.is_constrained = found.stop_reason, session.is_constrained\n",
                "            self.is_constrained = session.is_constrained\n",
            ),
        ),
        Test("tests/races/test_sequels.py::test_an_interrupting_message_is_not_for_the_turn_that_it_stops"),
    ),
)

NOT_YOURS_IS_NOT_THERE = (
    Mutant(
        "P7",
        "whoever knows the id of a session may change it",
        (Edit("src/outlast/store/unit.py", "is_owned=owner_id is not None", "is_owned=False"),),
        Test("tests/contracts/test_numbers.py::test_a_session_of_somebody_else_is_unknown"),
    ),
    Mutant(
        "P7",
        "whoever knows the id of a session may read it",
        (
            Edit(
                "src/outlast/store/repositories/sessions.py",
                '        sessions.c.id == sa.bindparam("id"),\n        sessions.c.owner_id == sa.bindparam("owner"),\n',
                '        sessions.c.id == sa.bindparam("id"),\n',
            ),
        ),
        Test("tests/behaviour/test_turns.py::test_another_owners_ids_are_unknown_ids"),
    ),
)

NOBODY_IS_HARMED = (
    Mutant(
        "P8",
        "a reader that falls behind is not told",
        (Edit("src/outlast/events/stream.py", "page.last - self.position > self._max_lag", "False"),),
        Test("tests/races/test_promises.py::test_a_reader_that_falls_behind_is_told_and_holds_up_nobody"),
    ),
    Mutant(
        "P8",
        "a failing listener takes the answer with it",
        (
            Edit(
                "src/outlast/store/sqlite/database.py",
                "hand_on(outbox, self.unit.committed)",
                "outbox.deliver(self.unit.committed)",
            ),
        ),
        Test("tests/contracts/test_transactions.py::test_a_failing_outbox_does_not_undo_or_deny_the_commit"),
    ),
)

MUTANTS = (
    *ACCEPTED_MEANS_KEPT,
    *FINISHED_MEANS_NEVER_REDONE,
    *EVERY_END_IS_TOLD_ONCE,
    *TOLD_ONCE,
    *OWNED,
    *GROUPED,
    *NO_READER_HANGS_AND_NONE_MISSES,
    *ONE_RUNNER,
    *STOPPING_STOPS,
    *NOT_YOURS_IS_NOT_THERE,
    *NOBODY_IS_HARMED,
)
