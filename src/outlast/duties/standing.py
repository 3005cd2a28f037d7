"""The duties that every worker has."""

from collections.abc import Callable
from functools import partial

from outlast.duties import duty
from outlast.duties.connected_calls import run_connected
from outlast.duties.deletions import Deletions
from outlast.duties.due_schedules import DueSchedules
from outlast.duties.duty import Duty
from outlast.duties.missed_cancels import signal_again
from outlast.duties.overdue_tasks import expire_overdue
from outlast.duties.retention import EVERY as RETENTION_EVERY
from outlast.duties.retention import Retention
from outlast.duties.unrun_turns import UnrunTurns
from outlast.duties.waiting_tasks import admit_waiting
from outlast.duties.webhooks import EVERY as EVERY_SECOND
from outlast.duties.webhooks import WebhookSender
from outlast.events.signals import Signals
from outlast.ids import TurnId, WorkerId
from outlast.store.database import Database


def standing(
    database: Database,
    signals: Signals,
    deletions: Deletions,
    webhooks: WebhookSender,
    retention: Retention,
    *,
    due: DueSchedules,
    me: Callable[[], WorkerId],
    runs: Callable[[TurnId], bool],
) -> list[Duty]:
    """`me`: the worker's present name. `runs`: whether this process runs a turn that it has claimed."""
    unrun = UnrunTurns(database, me=me, runs=runs)
    return [
        Duty("expire overdue tasks", partial(expire_overdue, database), duty.EVERY),
        Duty("admit waiting tasks", partial(admit_waiting, database), duty.EVERY),
        Duty("run connected calls", partial(run_connected, database), duty.EVERY),
        Duty("deliver webhooks", webhooks.send_due, EVERY_SECOND),
        Duty("remove what is old", retention.run, RETENTION_EVERY, wait=retention.wait),
        Duty("finish deletions", deletions.go_on, duty.EVERY),
        Duty("fire schedules", due.fire, duty.EVERY, wait=due.wait),
        Duty("give back unrun turns", unrun.give_back, duty.EVERY, is_shared=False),
        Duty("signal cancels again", partial(signal_again, database, signals, me), duty.EVERY, is_shared=False),
    ]
