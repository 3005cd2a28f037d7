"""The mutants of background work: parking, ends, wakes, `check_background` and cancel."""

from chaos.mutants.mutant import Chaos, Edit, Mutant, Test

_RACES = "tests/races/test_parking_races.py"
_CRASHES = "tests/races/test_parked_crashes.py"

TOLD_ONCE = (
    Mutant(
        "P3",
        "the end of a task wakes its session in a second commit",
        (
            Edit(
                "src/outlast/transitions/tasks/task_moves.py",
                "        _wake(unit, ended, content)\n        monitors.task_ended(unit, ended)\n    return moved\n",
                "        if error is not None:\n            _wake(unit, ended, content)\n"
                "        monitors.task_ended(unit, ended)\n    return moved\n\n\n"
                "def wake_late(unit: Unit, task_id: TaskId) -> None:\n"
                "    task = locked(unit, task_id)\n"
                "    if task is not None and task.is_over and task.error is None:\n"
                "        _wake(unit, task, ())\n",
            ),
            Edit(
                "src/outlast/runs/call_ends.py",
                '        await self.persist(lambda: self._database.transaction(end, name="task.end"))\n'
                "\n    async def persist",
                '        await self.persist(lambda: self._database.transaction(end, name="task.end"))\n'
                "        await self._database.transaction(\n"
                '            lambda unit: task_moves.wake_late(unit, task_id), name="late"\n'
                "        )\n\n    async def persist",
            ),
        ),
        Chaos("task.end", finds="lost"),
    ),
    Mutant(
        "P3",
        "the end that reconciling gives a task wakes nobody",
        (
            Edit(
                "src/outlast/transitions/tasks/task_moves.py",
                "        _wake(unit, ended, content)\n        monitors.task_ended(unit, ended)\n    return moved\n",
                '        if (error or {}).get("kind") != "interrupted":\n'
                "            _wake(unit, ended, content)\n        monitors.task_ended(unit, ended)\n    return moved\n",
            ),
        ),
        Test(f"{_CRASHES}::test_work_that_may_not_repeat_is_told_as_interrupted"),
    ),
    Mutant(
        "P3",
        "what check_background told is told by a wake as well",
        (Edit("src/outlast/runs/turns/call_log.py", "        if told and", "        if False and"),),
        Test(f"{_RACES}::test_what_check_background_told_is_not_told_by_a_wake"),
    ),
    Mutant(
        "P3",
        "a wake is withdrawn in a second commit, after the answer that tells its news",
        (
            Edit(
                "src/outlast/runs/turns/call_log.py",
                "            self.log.also(lambda unit: inbox.withdraw_wakes(unit, session_id, told))\n",
                "            await self.log.flush()\n"
                "            take = lambda unit: inbox.withdraw_wakes(unit, session_id, told)\n"
                '            await self.log.commit("late", take)\n',
            ),
        ),
        Chaos("withdraw", finds="double_wakes"),
    ),
    Mutant(
        "P3",
        "a call that was in flight is told as one that did not run",
        (
            Edit(
                "src/outlast/calls/outcomes.py",
                "It may or may not have taken effect, and it was not run",
                "It may be repeated: it has not taken effect, and it was not run",
            ),
        ),
        Chaos("tool", finds="untold"),
    ),
    Mutant(
        "P3",
        "a call that was parked right before a crash is never told as ended",
        (
            Edit(
                "src/outlast/runs/turns/load.py",
                "    await run.answers.call_log.tell_parked(book)\n",
                "",
            ),
        ),
        Test("tests/races/test_resumed_calls.py::test_a_call_parked_right_before_a_crash_is_told_as_ended"),
    ),
)

OWNED = (
    Mutant(
        "P2",
        "a task that may not be repeated is run again after a crash",
        (
            Edit(
                "src/outlast/transitions/kinds/call.py",
                "    if task.cancel_requested_at is not None or not task.may_run_again:\n",
                "    if task.cancel_requested_at is not None:\n",
            ),
        ),
        Test(f"{_CRASHES}::test_work_that_may_not_repeat_is_told_as_interrupted"),
    ),
    Mutant(
        "P5",
        "an attempt that was superseded may end its task",
        (
            Edit(
                "src/outlast/transitions/tasks/task_moves.py",
                "    if not task.is_run_by(attempt):\n        late =",
                "    if task.is_over:\n        late =",
            ),
        ),
        Test("tests/contracts/test_repositories.py::test_a_task_comes_back_and_ends_once"),
    ),
    Mutant(
        "P6",
        "a cancel does not reach the code that runs",
        (
            Edit(
                "src/outlast/runs/parked.py",
                "not task.is_run_by(owned.attempt) or task.cancel_requested_at is not None:",
                "not task.is_run_by(owned.attempt):",
            ),
        ),
        Test("tests/behaviour/test_cancel.py::test_cancel_reaches_an_async_tool"),
    ),
    Mutant(
        "P6",
        "a turn that was asked to stop may still park",
        (
            Edit(
                "src/outlast/runs/turns/turn_calls.py",
                "        if row is None or row.stop_requested_at is not None:\n",
                "        if row is None:\n",
            ),
        ),
        Test(f"{_RACES}::test_a_turn_that_was_asked_to_stop_cannot_park"),
    ),
    Mutant(
        "P8",
        "the cap on open tasks is ignored",
        (
            Edit(
                "src/outlast/runs/turns/turn_calls.py",
                "        is_full = tasks.open_count(unit.connection, fence.session_id) >= self._parts.max_open_tasks\n",
                "        is_full = False\n",
            ),
        ),
        Test("tests/behaviour/test_parked_calls.py::test_at_the_cap_a_call_is_waited_for_and_says_so"),
    ),
)
