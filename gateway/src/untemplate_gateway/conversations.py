"""Conversations of OpenAI's Responses (``/v1/conversations``): items that stored responses are added to.

A conversation is kept where responses are kept, and as long: its time begins again with each change.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qs

from .errors import ApiError, bad_request, not_found
from .exchange import Exchange
from .protocols.fields import read_as
from .protocols.responses import RESPONSES
from .protocols.responses.request import ConversationRequest, ItemsRequest
from .store import Kept, with_ids

_PAGE: Final = 20
_MOST: Final = 100
"""Most items of a page."""


def _id(exchange: Exchange) -> str:
    found: str = exchange.scope["path_params"]["id"]
    return found


async def _kept(exchange: Exchange) -> Kept:
    id = _id(exchange)
    found = None
    if id.startswith("conv_"):
        found = await asyncio.to_thread(exchange.gateway.store.get, exchange.record.owner, id)
    if found is None:
        raise not_found(f"no conversation {id[:64]!r} is stored here", code="conversation_not_found")
    return found


async def _put(exchange: Exchange, kept: Kept) -> None:
    if not await asyncio.to_thread(exchange.gateway.store.put, exchange.record.owner, kept):
        raise exchange.gateway.store.refusal("conversation")


def _shown(kept: Kept) -> dict[str, Any]:
    return {name: value for name, value in kept.response.items() if name != "output"}


def _read(exchange: Exchange, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return new items with ids, as they are stored."""
    if items:
        try:
            RESPONSES.read({"input": list(items)}, exchange.notes)
        except ApiError as error:
            raise error.renamed({"input": "items"}) from None
    return with_ids(items)


async def create(exchange: Exchange) -> None:
    asked = read_as(ConversationRequest, exchange.body)
    id = f"conv_{secrets.token_hex(24)}"
    made = {"id": id, "object": "conversation", "created_at": int(time.time()), "metadata": asked.metadata or {}}
    kept = Kept({**made, "output": []}, _read(exchange, asked.items or ()))
    await _put(exchange, kept)
    await exchange.reply(_shown(kept))


async def show(exchange: Exchange) -> None:
    await exchange.reply(_shown(await _kept(exchange)))


async def update(exchange: Exchange) -> None:
    """Replace the metadata."""
    asked = read_as(ConversationRequest, exchange.body)
    kept = await _kept(exchange)
    kept.response["metadata"] = asked.metadata or {}
    await _put(exchange, kept)
    await exchange.reply(_shown(kept))


async def delete(exchange: Exchange) -> None:
    await _kept(exchange)
    await asyncio.to_thread(exchange.gateway.store.delete, exchange.record.owner, _id(exchange))
    await exchange.reply({"id": _id(exchange), "object": "conversation.deleted", "deleted": True})


async def add_items(exchange: Exchange) -> None:
    asked = read_as(ItemsRequest, exchange.body)
    await _kept(exchange)
    items = _read(exchange, asked.items)
    store, owner = exchange.gateway.store, exchange.record.owner
    if not await asyncio.to_thread(store.extend, owner, _id(exchange), items):
        raise store.refusal("items")
    await exchange.reply(_page(items, has_more=False))


async def list_items(exchange: Exchange) -> None:
    """Return a page of the items, the newest first."""
    query = parse_qs(exchange.scope.get("query_string", b"").decode("latin-1"))
    asked = {name: values[0] for name, values in query.items()}
    limit, order = asked.get("limit", str(_PAGE)), asked.get("order", "desc")
    if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:9]) <= _MOST):
        raise bad_request("limit", f"must be an integer from 1 to {_MOST}, got {limit[:20]!r}")
    if order not in ("asc", "desc"):
        raise bad_request("order", f"must be one of asc, desc, got {order[:20]!r}")
    items = (await _kept(exchange)).items[:: 1 if order == "asc" else -1]
    ids = [item["id"] for item in items]
    start = ids.index(asked["after"]) + 1 if asked.get("after") in ids else 0
    end = start + int(limit)
    await exchange.reply(_page(items[start:end], has_more=end < len(items)))


def _page(items: Sequence[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return {"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more}


async def show_item(exchange: Exchange) -> None:
    await exchange.reply(_item(exchange, await _kept(exchange)))


async def delete_item(exchange: Exchange) -> None:
    kept = await _kept(exchange)
    kept.items.remove(_item(exchange, kept))
    await _put(exchange, kept)
    await exchange.reply(_shown(kept))


def _item(exchange: Exchange, kept: Kept) -> dict[str, Any]:
    id = exchange.scope["path_params"]["item"]
    found = next((item for item in kept.items if item["id"] == id), None)
    if found is None:
        raise not_found(f"the conversation has no item {id[:64]!r}", code="item_not_found")
    return found
