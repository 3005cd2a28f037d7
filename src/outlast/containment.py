"""Foreign code (tools, models, deps, listeners): whatever it raises ends what it was run for, and nothing else.

asyncio passes `SystemExit` and `KeyboardInterrupt` of any coroutine on to whoever runs the event loop. Here they become
errors before it sees them, as does everything else that an `except Exception` lets through. What comes from outside
keeps its meaning: a cancel, Ctrl-C, and the closing of a coroutine. Callbacks that foreign code gives the loop itself
(`loop.call_soon(sys.exit)`) are not contained: that would cost every turn a twentieth of its time.
"""

import asyncio
import dis
import signal
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import CancelledError
from contextvars import Context, ContextVar, Token
from functools import partial
from types import CodeType, FrameType, TracebackType
from typing import Any

_RAISE = dis.opmap["RAISE_VARARGS"]
_MARK = "_outlast_ctrl_c"
_is_foreign: ContextVar[bool] = ContextVar("outlast_foreign", default=False)


class ForeignExit(RuntimeError):
    """Foreign code raised something that means to end more than itself; that is its cause."""


class Contained:
    """`with Contained():` around foreign code, in the coroutine that runs it; also for coroutines that it starts."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token: Token[bool] = _is_foreign.set(True)

    def __exit__(self, _: type[BaseException] | None, exc: BaseException | None, __: TracebackType | None) -> None:
        _is_foreign.reset(self._token)
        if exc is not None and not isinstance(exc, Exception | asyncio.CancelledError):
            raise as_error(exc) from exc


def as_error(exc: BaseException) -> Exception:
    """The same, or an error with it as its cause. Raises it when it comes from outside of the code that was run."""
    if isinstance(exc, Exception):
        return exc
    if isinstance(exc, asyncio.CancelledError) or _is_from_outside(exc):
        raise exc
    return _error_of(exc)


def contained_thread(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function for a thread of ours, which nobody cancels or interrupts: nothing but an error leaves it.

    asyncio takes a cancel for its own, and never ends a wait for a future that ended in `StopIteration`.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except (StopIteration, CancelledError) as exc:
            raise _error_of(exc) from exc
        except Exception:
            raise
        except BaseException as exc:
            raise _error_of(exc) from exc

    return run


def _error_of(exc: BaseException) -> ForeignExit:
    error = ForeignExit(f"{type(exc).__name__} was raised where only errors may be")
    error.__cause__ = exc
    return error


def _is_from_outside(exc: BaseException) -> bool:
    """Ctrl-C, or the closing of a coroutine."""
    if isinstance(exc, KeyboardInterrupt):
        if _ctrl_c.is_seen:
            return getattr(exc, _MARK, None) is True
        # Somebody else has taken the signal over, or this thread never gets it.
        return threading.current_thread() is threading.main_thread() and _is_raised_by_nobody(exc)
    return isinstance(exc, GeneratorExit) and _is_raised_by_nobody(exc)


def _is_raised_by_nobody(exc: BaseException) -> bool:
    """No statement of the code that ran has raised it."""
    place, handler = exc.__traceback__, _code_of(signal.getsignal(signal.SIGINT))
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return True
    code = place.tb_frame.f_code
    return code is handler or code.co_code[place.tb_lasti] != _RAISE


def _code_of(handler: Any) -> CodeType | None:
    while isinstance(handler, partial):
        handler = handler.func
    return getattr(handler, "__code__", None)


class _CtrlC:
    """Marks what the handler of SIGINT raises, whoever set that: of nothing else is it sure that it was Ctrl-C.

    It stands in front of the handler as long as somebody needs it. Signals are of the process, and so is this.
    """

    def __init__(self) -> None:
        self._users = 0
        self._before: Any = None

    @property
    def is_seen(self) -> bool:
        return self._users > 0 and signal.getsignal(signal.SIGINT) == self._handle

    def watch(self) -> None:
        before = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and callable(before) and before != self._handle:
            self._before = before
            signal.signal(signal.SIGINT, self._handle)
        self._users += 1

    def forget(self) -> None:
        self._users -= 1
        is_main = threading.current_thread() is threading.main_thread()
        if self._users == 0 and is_main and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before(number, frame)
        except KeyboardInterrupt as exc:
            setattr(exc, _MARK, True)
            raise


_ctrl_c = _CtrlC()


class _Coroutine(Coroutine[Any, Any, Any]):
    """Another coroutine whose wish to end the process is an error of its own."""

    __slots__ = ("__weakref__", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def __repr__(self) -> str:
        return repr(self._coroutine)

    def __getattr__(self, name: str) -> Any:
        """What tools for debugging ask of a coroutine: `cr_frame` and the like."""
        return getattr(self._coroutine, name)

    def send(self, value: Any) -> Any:
        try:
            return self._coroutine.send(value)
        except (SystemExit, KeyboardInterrupt) as exc:
            raise as_error(exc) from exc

    def throw(self, *args: Any) -> Any:
        try:
            return self._coroutine.throw(*args)
        except (SystemExit, KeyboardInterrupt) as exc:
            raise as_error(exc) from exc

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()


class ForeignTasks:
    """`with ForeignTasks():` on a loop: what foreign code starts there by itself is contained too."""

    def __init__(self) -> None:
        self._loop: AbstractEventLoop | None = None
        self._factory: Callable[..., Any] | None = None
        self._before: Any = None

    def __enter__(self) -> None:
        _ctrl_c.watch()
        self._loop = asyncio.get_running_loop()
        self._before = self._loop.get_task_factory()
        self._factory = partial(_make_task, self._before)
        self._loop.set_task_factory(self._factory)

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        _ctrl_c.forget()
        if self._loop.get_task_factory() is self._factory:  # else somebody has put another one around it
            self._loop.set_task_factory(self._before)


def _make_task(before: Any, loop: AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
    context: Context | None = options.get("context")
    is_foreign = _is_foreign.get() if context is None else context.get(_is_foreign, False)
    if is_foreign and not isinstance(coroutine, _Coroutine):
        coroutine = _Coroutine(coroutine)
    return asyncio.Task(coroutine, loop=loop, **options) if before is None else before(loop, coroutine, **options)
