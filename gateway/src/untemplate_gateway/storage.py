"""Places where stored responses are kept: SQLite (in memory or a file) and Redis.

Responses are encoded, belong to owners and end. Threads may share a storage. One that does not work (a full disk, a
server that does not answer) raises `StorageError` in all its methods.

SQLite bounds the bytes of all responses. In Redis, responses end by their time to live, and the server's ``maxmemory``
bounds their bytes.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from untemplate._internal.installed import install_command
from untemplate.errors import SettingsError

_PAUSE: Final = 10.0
"""Seconds without a further attempt after Redis failed: an attempt may block the server for `_PATIENCE` seconds."""
_PATIENCE: Final = 1.0
_SCHEMA: Final = 1
"""Version of the tables in SQLite. Files of before it was written have the same tables."""

_T = TypeVar("_T")


class StorageError(Exception):
    """The storage does not work at present."""


class SqliteStorage:
    """Responses in memory, or in a file that survives a restart and may be shared by processes of one machine.

    Args:
        path: the file; memory if it is empty.
        seconds: how long a response is kept.
        limit: bytes of all responses.
        clock: seconds since the epoch.

    Raises:
        SettingsError: the file cannot be used.
    """

    def __init__(self, path: str, seconds: float, limit: int, clock: Callable[[], float] = time.time) -> None:
        self._seconds = seconds
        self._limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=5, check_same_thread=False)
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > _SCHEMA:
                raise SettingsError(f"response_store: {path}: a later version of untemplate made this file")
            self._db.executescript(
                f"PRAGMA user_version={_SCHEMA}; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                "CREATE TABLE IF NOT EXISTS responses"
                " (id TEXT PRIMARY KEY, owner TEXT, until REAL, size INTEGER, data BLOB);"
                "CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, response TEXT);"
                "CREATE INDEX IF NOT EXISTS by_time ON responses (until, size);"
                "CREATE INDEX IF NOT EXISTS by_response ON items (response)"
            )
        except sqlite3.Error as error:
            raise SettingsError(f"response_store: {path}: {error}") from None

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Use the database in a transaction, if one is begun."""
        try:
            with self._lock, self._db:
                yield
        except sqlite3.Error as error:
            raise StorageError(str(error)) from None

    def put(self, owner: str, id: str, data: bytes, items: Sequence[str]) -> None:
        """Store a response, and remove what is too old or too much. ``items`` are ids for `response_of`."""
        until = self._clock() + self._seconds
        with self._using():
            self._db.execute("BEGIN")
            self._db.execute(
                "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?)", (id, owner, until, len(data), data)
            )
            for item in items:
                self._db.execute("INSERT OR REPLACE INTO items VALUES (?, ?)", (item, id))
            self._trim()

    def _trim(self) -> None:
        now = self._clock()
        held = self._db.execute("SELECT coalesce(sum(size), 0) FROM responses").fetchone()[0]
        oldest = "SELECT id, until, size FROM responses ORDER BY until, rowid LIMIT 1"
        while (row := self._db.execute(oldest).fetchone()) is not None and (row[1] <= now or held > self._limit):
            self._delete(row[0])
            held -= row[2]

    def _delete(self, id: str) -> None:
        self._db.execute("DELETE FROM responses WHERE id = ?", (id,))
        self._db.execute("DELETE FROM items WHERE response = ?", (id,))

    def get(self, owner: str, id: str) -> bytes | None:
        with self._using():
            row = self._db.execute(
                "SELECT data FROM responses WHERE id = ? AND owner = ? AND until > ?", (id, owner, self._clock())
            ).fetchone()
        return None if row is None else row[0]

    def response_of(self, item: str) -> str | None:
        """Return the id of the response that has this item."""
        with self._using():
            row = self._db.execute("SELECT response FROM items WHERE id = ?", (item,)).fetchone()
        return None if row is None else row[0]

    def remove(self, owner: str, id: str, items: Sequence[str]) -> None:
        with self._using():
            self._db.execute("BEGIN")
            self._delete(id)

    def close(self) -> None:
        self._db.close()


class RedisStorage:
    """Responses in Redis (or a server that speaks its protocol), shared by gateways on many machines.

    Raises:
        SettingsError: the server does not answer, or the package is missing.
    """

    def __init__(self, url: str, seconds: float) -> None:
        try:
            import redis
        except ImportError:
            command = install_command("untemplate-gateway", "redis")
            raise SettingsError(f"response_store: Redis needs redis: {command}") from None
        self._milliseconds = max(int(seconds * 1000), 1)
        self._errors = redis.RedisError
        self._paused_until = 0.0
        try:
            self._redis: Any = redis.Redis.from_url(url, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE)
            if seconds > 0:
                self._redis.ping()
        except (redis.RedisError, ValueError) as error:
            raise SettingsError(f"response_store: Redis does not answer: {error}") from None

    def _try(self, act: Callable[[], _T]) -> _T:
        if time.monotonic() < self._paused_until:
            raise StorageError("Redis did not answer a moment ago")
        try:
            return act()
        except self._errors as error:
            self._paused_until = time.monotonic() + _PAUSE
            raise StorageError(f"Redis fails: {error}") from None

    def put(self, owner: str, id: str, data: bytes, items: Sequence[str]) -> None:
        def act() -> None:
            pipe = self._redis.pipeline(transaction=True)
            pipe.set(_key(owner, id), data, px=self._milliseconds)
            for item in items:
                pipe.set(_item(item), id, px=self._milliseconds)
            pipe.execute()

        self._try(act)

    def get(self, owner: str, id: str) -> bytes | None:
        found: bytes | None = self._try(lambda: self._redis.get(_key(owner, id)))
        return found

    def response_of(self, item: str) -> str | None:
        found = self._try(lambda: self._redis.get(_item(item)))
        return None if found is None else found.decode()

    def remove(self, owner: str, id: str, items: Sequence[str]) -> None:
        self._try(lambda: self._redis.delete(_key(owner, id), *map(_item, items)))

    def close(self) -> None:
        self._redis.close()


def _key(owner: str, id: str) -> str:
    return f"untemplate:response:{owner}:{id}"


def _item(id: str) -> str:
    return f"untemplate:item:{id}"
