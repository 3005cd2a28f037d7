"""The mutants of background work in groups: accepted, claimed and ended together."""

from chaos.mutants.mutant import Edit, Mutant, Test

_GROUPS = "tests/contracts/test_task_groups.py"
_TOGETHER = "tests/contracts/test_group_commit.py"
_RACES = "tests/races/test_accepted_task_races.py"
_ACCEPTED = "tests/behaviour/test_accepted_tasks.py"

GROUPED = (
    Mutant(
        "P2",
        "a task that was claimed by a process that leaves is kept, though it never began",
        (
            Edit(
                "src/outlast/runs/task_runs.py",
                "            if self._is_leaving:\n                return await parts.calls.parked.give_back(task)\n",
                "            if self._is_leaving:\n                return\n",
            ),
        ),
        Test(f"{_RACES}::test_one_that_is_claimed_while_the_process_leaves_is_left_to_the_next"),
    ),
    Mutant(
        "P3",
        "a task that ends twice in one group is told twice",
        (
            Edit(
                "src/outlast/transitions/tasks/many_tasks.py",
                "        if task is None or task.id in ended or not",
                "        if task is None or not",
            ),
        ),
        Test(f"{_GROUPS}::test_the_first_end_wins_in_a_group_and_after_it"),
    ),
    Mutant(
        "P3",
        "an end in a group wakes nobody",
        (
            Edit(
                "src/outlast/transitions/tasks/many_tasks.py",
                "not task.is_run_by(each.attempt) or not _is_quiet(task):",
                "not task.is_run_by(each.attempt):",
            ),
        ),
        Test(f"{_GROUPS}::test_an_end_that_wakes_somebody_is_left_out_of_a_group"),
    ),
    Mutant(
        "P5",
        "a task that is asked for twice in one group is claimed twice",
        (
            Edit(
                "src/outlast/transitions/tasks/many_tasks.py",
                "        task = claimed.pop(task_id, None)",
                "        task = claimed.get(task_id)",
            ),
        ),
        Test(f"{_GROUPS}::test_each_is_claimed_once_also_when_it_is_asked_for_twice"),
    ),
    Mutant(
        "P6",
        "a cancel that comes between the claim and the call is not heard",
        (
            Edit(
                "src/outlast/runs/owned.py",
                "        return self._times > 1\n",
                "        return False\n",
            ),
        ),
        Test(f"{_ACCEPTED}::test_a_cancel_before_there_is_a_call_is_heard"),
    ),
    Mutant(
        "P8",
        "one that fails takes the others of its group with it",
        (
            Edit(
                "src/outlast/store/group_commit.py",
                "            if is_alone or isinstance(exc, StoreUnavailable):\n",
                "            if some:\n",
            ),
        ),
        Test(f"{_TOGETHER}::test_one_that_fails_takes_nothing_of_the_others_with_it"),
    ),
)
