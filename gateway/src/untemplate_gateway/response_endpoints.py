"""Endpoints of stored responses (``/v1/responses/…``) and of conversations of them (``/v1/conversations``).

A conversation is kept where responses are kept, and as long: its time begins again with each change.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

from .background import cancelled
from .counting import count_prompt
from .errors import ApiError, bad_request, not_found
from .exchange import Exchange
from .protocols.fields import read_as
from .protocols.responses import RESPONSES
from .protocols.responses.request import ConversationRequest, ItemsRequest
from .store import UNFINISHED, Kept, with_ids

_PAGE: Final = 20
_MOST: Final = 100
"""Most items of a page."""


async def _kept(exchange: Exchange, kind: str, prefix: str, param: str | None = None) -> Kept:
    """Return what the path names.

    Args:
        prefix: of the ids of this kind.
    """
    id: str = exchange.scope["path_params"]["id"]
    found = None
    if id.startswith(prefix):
        found = await asyncio.to_thread(exchange.gateway.store.get, exchange.record.owner, id)
    if found is None:
        raise not_found(f"no {kind} {id[:64]!r} is stored here", code=f"{kind}_not_found", param=param)
    return found


async def _response(exchange: Exchange) -> Kept:
    return await _kept(exchange, "response", "", "response_id")


async def _conversation(exchange: Exchange) -> Kept:
    return await _kept(exchange, "conversation", "conv_")


def _page(items: Sequence[dict[str, Any]], has_more: bool = False) -> dict[str, Any]:
    first, last = (items[0].get("id"), items[-1].get("id")) if items else (None, None)
    return {"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more}


# -- Responses -----------------------------------------------------------------------------------------------------


async def get_response(exchange: Exchange) -> None:
    await exchange.reply((await _response(exchange)).response)


async def cancel_response(exchange: Exchange) -> None:
    """Cancel a response that is generated in the background."""
    kept = await _response(exchange)
    await exchange.reply(await cancelled(exchange.gateway, exchange.record.owner, kept))


async def delete_response(exchange: Exchange) -> None:
    """Remove a stored response. If it is being generated, that ends."""
    kept = await _response(exchange)
    id = kept.response["id"]
    if kept.response.get("status") in UNFINISHED:
        await exchange.gateway.background.stop(id)
    if not await asyncio.to_thread(exchange.gateway.store.delete, exchange.record.owner, id):
        await _response(exchange)  # raises: another request has deleted it
    await exchange.reply({"id": id, "object": "response", "deleted": True})


async def list_items(exchange: Exchange) -> None:
    """Return the input of a stored response."""
    await exchange.reply(_page((await _response(exchange)).items))


async def count_input(exchange: Exchange) -> None:
    """Return the number of tokens of a request's prompt."""
    body = await exchange.gateway.store.expanded(exchange.record.owner, exchange.body)
    count = await count_prompt(exchange, RESPONSES.read(body, exchange.notes))
    await exchange.reply({"object": "response.input_tokens", "input_tokens": count})


# -- Conversations -------------------------------------------------------------------------------------------------


async def _changed(exchange: Exchange, change: Callable[[Kept], None], param: str = "conversation") -> Kept:
    """Change the conversation that the path names, and return it."""
    store, id = exchange.gateway.store, (await _conversation(exchange)).response["id"]
    found = await asyncio.to_thread(store.change, exchange.record.owner, id, change)
    if found is None:
        raise store.refusal(param)
    return found


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


async def create_conversation(exchange: Exchange) -> None:
    asked = read_as(ConversationRequest, exchange.body)
    id = f"conv_{secrets.token_hex(24)}"
    made = {"id": id, "object": "conversation", "created_at": int(time.time()), "metadata": asked.metadata or {}}
    kept = Kept({**made, "output": []}, _read(exchange, asked.items or ()))
    if not await asyncio.to_thread(exchange.gateway.store.put, exchange.record.owner, kept):
        raise exchange.gateway.store.refusal("conversation")
    await exchange.reply(_shown(kept))


async def show_conversation(exchange: Exchange) -> None:
    await exchange.reply(_shown(await _conversation(exchange)))


async def update_conversation(exchange: Exchange) -> None:
    """Replace the metadata."""
    asked = read_as(ConversationRequest, exchange.body)
    changed = await _changed(exchange, lambda kept: kept.response.update(metadata=asked.metadata or {}))
    await exchange.reply(_shown(changed))


async def delete_conversation(exchange: Exchange) -> None:
    id = (await _conversation(exchange)).response["id"]
    await asyncio.to_thread(exchange.gateway.store.delete, exchange.record.owner, id)
    await exchange.reply({"id": id, "object": "conversation.deleted", "deleted": True})


async def add_items(exchange: Exchange) -> None:
    asked = read_as(ItemsRequest, exchange.body)
    items = _read(exchange, asked.items)
    await _changed(exchange, lambda kept: kept.items.extend(items), "items")
    await exchange.reply(_page(items))


async def list_conversation(exchange: Exchange) -> None:
    """Return a page of the items, the newest first."""
    query = parse_qs(exchange.scope.get("query_string", b"").decode("latin-1"))
    asked = {name: values[0] for name, values in query.items()}
    limit, order = asked.get("limit", str(_PAGE)), asked.get("order", "desc")
    if not (limit.isascii() and limit.isdecimal() and len(limit) < 10 and 1 <= int(limit) <= _MOST):
        raise bad_request("limit", f"must be an integer from 1 to {_MOST}, got {limit[:20]!r}")
    if order not in ("asc", "desc"):
        raise bad_request("order", f"must be one of asc, desc, got {order[:20]!r}")
    items = (await _conversation(exchange)).items[:: 1 if order == "asc" else -1]
    ids = [item["id"] for item in items]
    start = ids.index(asked["after"]) + 1 if asked.get("after") in ids else 0
    end = start + int(limit)
    await exchange.reply(_page(items[start:end], end < len(items)))


async def show_item(exchange: Exchange) -> None:
    await exchange.reply(_item(exchange, await _conversation(exchange)))


async def delete_item(exchange: Exchange) -> None:
    await exchange.reply(_shown(await _changed(exchange, lambda kept: kept.items.remove(_item(exchange, kept)))))


def _item(exchange: Exchange, kept: Kept) -> dict[str, Any]:
    id = exchange.scope["path_params"]["item"]
    found = next((item for item in kept.items if item["id"] == id), None)
    if found is None:
        raise not_found(f"the conversation has no item {id[:64]!r}", code="item_not_found")
    return found
