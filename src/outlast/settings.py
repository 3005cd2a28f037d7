"""Every limit and default in one place. Settings stop at the composition root: parts get plain values."""

from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from outlast.errors import InvalidInput
from outlast.variables import PREFIX, warn_of_unknown


def _seconds(value: Any) -> Any:
    """A number is seconds, also in a variable, where it is a text; `PT1M30S` and `0:01:30` say it too."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value)
    return value


Duration = Annotated[timedelta, BeforeValidator(_seconds)]


class Settings(BaseSettings):
    """Read from arguments first, then from `OUTLAST_*` environment variables, then these defaults."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_parse_none_str="None", frozen=True)

    durability: Literal["full", "normal"] = Field(
        default="full",
        description="SQLite `synchronous`. `normal` may lose the last commits in a power cut (not in a crash).",
    )
    files: str | None = Field(
        default=None,
        description="Where large values go: a URL or folder that all processes reach. Default: beside a SQLite file; "
        "with PostgreSQL, a folder in the working directory.",
    )
    run_work: bool = Field(
        default=True,
        description="Whether this process runs turns and tasks, or only accepts them (PostgreSQL).",
    )
    database_connections: int = Field(
        default=10, ge=2, description="PostgreSQL: connections of one process for reads and commits, at most."
    )
    connection_wait: Duration = Field(
        default=timedelta(seconds=10),
        gt=timedelta(0),
        description="PostgreSQL: how long a request waits for a connection before it is told to try again (503).",
    )
    direct_database: str | None = Field(
        default=None,
        description="PostgreSQL behind a pooler: a URL past it, for what needs a session of its own (listening, "
        "presence, jobs, migrations).",
    )
    coalesce: Duration = Field(
        default=timedelta(milliseconds=25),
        description="How long text deltas and call ends wait to share a commit.",
    )
    max_turns_per_worker: int = Field(default=64, ge=1, description="Turns one worker runs at once.")
    max_tasks_per_worker: int = Field(
        default=64,
        ge=1,
        description="Background tasks that one worker claims and runs at once, beside calls that outlive their turn.",
    )
    max_turns_per_owner: int = Field(default=8, ge=1, description="Turns of one owner that run at once.")
    max_queued_turns_per_owner: int = Field(default=100, ge=1, description="Turns of one owner that may wait.")
    daily_cost_limit: int | None = Field(
        default=None,
        ge=0,
        description="Microdollars an owner may spend in a UTC day; then no turn starts before midnight. "
        "Requests of unknown cost do not count.",
    )
    max_inbox: int = Field(default=10, ge=1, description="Messages that may wait in one session.")
    max_busy_messages_per_minute: int = Field(
        default=30, ge=1, description="Messages a minute that an owner may send to busy sessions."
    )
    max_text: int = Field(default=64_000, ge=1, description="Characters in one message.")
    max_requests_per_turn: int = Field(default=200, ge=1, description="Model requests in one turn.")
    max_claims: int = Field(
        default=3, ge=1, description="How often a turn or a task is run whose workers die under it."
    )
    max_woken_turns: int = Field(default=20, ge=1, description="Woken turns in a row without a person.")
    model_idle_timeout: Duration = Field(
        default=timedelta(seconds=600), description="Silence of an open model request that ends the turn."
    )
    model_retries: int = Field(default=3, ge=0, description="Retries of a transient model error.")
    model_backoff: Duration = Field(
        default=timedelta(seconds=1), description="First wait before such a retry; doubles each time."
    )
    budget: Duration | None = Field(
        default=timedelta(seconds=60),
        description="How long a turn waits for a call before it is parked; None: it waits.",
    )
    call_deadline: Duration = Field(
        default=timedelta(hours=24), description="When a call is told to stop, parked or not."
    )
    request_deadline: Duration = Field(
        default=timedelta(days=7), description="How long a task waits for a person's answer or approval; then it fails."
    )
    steer_parks_after: Duration = Field(
        default=timedelta(seconds=5),
        description="How long running calls keep a steering message waiting, then they park.",
    )
    max_open_tasks_per_session: int = Field(
        default=32,
        ge=1,
        description="Open tasks of a session; past that nothing is spawned, and calls are waited for, not parked.",
    )
    max_spawned_per_session: int = Field(
        default=5,
        ge=1,
        description="Spawned tasks of a session that run at once; the others wait for a place, in order.",
    )
    max_spawned_per_owner: int = Field(
        default=100, ge=1, description="Spawned tasks of one owner that run at once, over all sessions."
    )
    max_schedules_per_session: int = Field(default=20, ge=0, description="Schedules of a session that have not ended.")
    max_schedules_per_owner: int = Field(
        default=100, ge=0, description="Schedules of one owner that have not ended, over all sessions."
    )
    max_sub_sessions: int = Field(
        default=16, ge=0, description="Sub-sessions that work for a session at the same time."
    )
    max_depth: int = Field(
        default=5, ge=1, description="How deep sub-sessions of sub-sessions may be, the top included."
    )
    wake_company: Duration = Field(
        default=timedelta(seconds=2), description="How long a wake waits for other tasks that may end soon."
    )
    stop_grace: Duration = Field(
        default=timedelta(milliseconds=800),
        description="How long Stop waits for calls to confirm their cancel.",
    )
    drain: Duration = Field(
        default=timedelta(seconds=5), description="How long turns may take to reach a boundary at shutdown."
    )
    abandon_after: Duration = Field(
        default=timedelta(seconds=10),
        description="After this, a call that ignores its cancel is reported abandoned.",
    )
    context_window: int | None = Field(
        default=None,
        ge=1,
        description="Tokens of the model's window. Default: what the model's profile says.",
    )
    compact_above: float = Field(
        default=0.75,
        gt=0,
        le=1,
        description="Share of the window above which history is shortened for the model.",
    )
    keep_output: Duration | None = Field(
        default=timedelta(days=30), description="How long the output of a task is kept after its end. None: for ever."
    )
    keep_feed: Duration | None = Field(
        default=timedelta(days=30),
        description="How long an owner's feed is kept; the logs of sessions stay. None: for ever.",
    )
    keep_deliveries: Duration | None = Field(
        default=timedelta(days=30), description="How long the log of webhooks is kept. None: for ever."
    )
    keep_fires: Duration | None = Field(
        default=timedelta(days=30), description="How long past fires of schedules are listed. None: for ever."
    )
    keep_archived: Duration | None = Field(
        default=None,
        gt=timedelta(0),
        description="How long an archived session is kept after its last event, which archiving and reading it are. "
        "None: for ever.",
    )
    keep_events: Duration | None = Field(
        default=None,
        gt=timedelta(0),
        description="How long the log of a turn is kept after its end; what it folds to stays. None: for ever.",
    )
    history_window: int | None = Field(
        default=400,
        ge=4,
        description="Messages of a session that its model is sent at most; a summary stands for what is before them. "
        "None: all of them.",
    )
    summary_model: str | None = Field(
        default=None,
        description="The model that makes summaries, such as openai:gpt-5-mini. Default: that of the turn.",
    )
    title_model: str | None = Field(
        default=None,
        description="The model that makes titles of sessions. Default: the first words of the first message.",
    )
    turn_deadline: Duration = Field(
        default=timedelta(hours=6), gt=timedelta(0), description="How long a turn may go on asking its model."
    )
    turn_cost_limit: int | None = Field(
        default=None,
        ge=0,
        description="Microdollars that one turn may cost, checked before each model request. Unknown costs do not "
        "count.",
    )
    max_reader_lag: int = Field(
        default=10_000, ge=1, description="Events a following reader may be behind before it is told so."
    )
    thread_limit: int = Field(
        default=256,
        ge=1,
        description="Threads for sync tools. One owner gets half of them, the next one half of the rest, and so on.",
    )
    heartbeat: Duration = Field(
        default=timedelta(seconds=10),
        description="How often an idle stream says that it is alive. Clients look elsewhere after 25 s of silence.",
    )
    max_wait: Duration = Field(
        default=timedelta(seconds=300), description="How long a request may wait for an end; longer means this."
    )
    max_file_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=1,
        description="Bytes of one file; over HTTP no more than `max_body_bytes` either.",
    )
    max_session_bytes: int = Field(
        default=1024 * 1024 * 1024, ge=1, description="Bytes of all named files of a session together."
    )
    max_body_bytes: int = Field(default=16 * 1024 * 1024, ge=1, description="Bytes in the body of one request.")
    max_requests_per_minute: int = Field(
        default=3_000, ge=1, description="Requests a minute of one owner, counted in each process."
    )
    max_open_requests_per_owner: int = Field(
        default=100, ge=1, description="Requests of one owner that are open at once in each process, streams included."
    )
    max_body_bytes_per_minute: int = Field(
        default=64 * 1024 * 1024, ge=1, description="Bytes in the bodies of one owner in a minute, in each process."
    )
    max_body_values: int = Field(
        default=250_000, ge=1, description="Values and escaped characters in the body of one request."
    )
    max_login_bytes: int = Field(
        default=4_096, ge=256, description="Bytes in the body of a request that needs no key, as at the login."
    )
    body_timeout: Duration = Field(
        default=timedelta(seconds=30), gt=timedelta(0), description="How long the body of a request may stand still."
    )
    header_timeout: Duration = Field(
        default=timedelta(seconds=10),
        gt=timedelta(0),
        description="How long a connection may take to send the head of a request (`outlast serve`).",
    )
    max_header_bytes: int = Field(
        default=64 * 1024, ge=1_024, description="Bytes in the head of a request (`outlast serve`)."
    )
    max_strangers: int = Field(
        default=16, ge=1, description="Callers with a key not seen before that are looked up at once; others wait."
    )
    max_strange_connections: int = Field(
        default=1_000,
        ge=1,
        description="Connections over which nobody was let in yet; past that, the oldest silent one is closed "
        "(`outlast serve`).",
    )
    public_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s?#]+$",
        description="Where others reach this server, such as https://agents.example.org: completion URLs of external "
        "operations begin with it. `outlast serve` on this machine only knows its own.",
    )
    server_key: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="With this key, as a bearer token, a server of yours completes external operations of all owners.",
    )
    allowed_networks: tuple[str, ...] = Field(
        default=(),
        description="Networks that webhooks and web fetch may reach although they are not public, such as 10.1.0.0/16. "
        "A JSON list.",
    )
    allow_shell: bool = Field(
        default=False,
        description="Whether `outlast serve` lets others than this machine reach an agent that runs shell commands.",
    )
    cors_origins: tuple[str, ...] = Field(
        default=(), description="Origins whose pages may call the server; none unless set. A JSON list."
    )
    jwks_url: str | None = Field(default=None, description="Where the issuer of JWTs publishes its keys.")
    jwt_audience: str | None = Field(default=None, description="The audience that a JWT must be meant for.")
    jwt_issuer: str | None = Field(default=None, description="The issuer that a JWT must come from.")
    encryption_keys: tuple[SecretStr, ...] = Field(
        default=(),
        description="Keys for what is kept encrypted, registered secrets and connections: the first encrypts, all "
        "decrypt. A JSON list; make one with `outlast keys generate-encryption`. Without one there are no connections, "
        "and each process knows only the secrets that were registered in it, until it ends.",
    )
    connection_urls: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Where people get a credential, by provider, shown with calls that wait for one. A JSON object: "
        '`{"github": "https://github.com/settings/tokens"}`.',
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="What a server or worker process logs, as JSON unless on a terminal."
    )

    @model_validator(mode="after")
    def _name_unknown_variables(self) -> Self:
        """An argument that is not known is refused; a variable may be meant for another program."""
        warn_of_unknown(type(self).model_fields)
        return self


def from_environment() -> Settings:
    """Raises `InvalidInput` that names the variables that do not fit."""
    try:
        return Settings()
    except ValidationError as exc:
        raise InvalidInput("; ".join(map(_wrong, exc.errors())) + ".") from None


def _wrong(error: ErrorDetails) -> str:
    name = str(error["loc"][0]).upper().removeprefix(PREFIX)
    hint = ": write seconds, or PT1M30S" if error["type"].startswith("time_delta_pars") else ""
    value = "" if name in ("ENCRYPTION_KEYS", "SERVER_KEY") else f"={error['input']}"
    return f"{PREFIX}{name}{value}: {error['msg']}{hint}"
