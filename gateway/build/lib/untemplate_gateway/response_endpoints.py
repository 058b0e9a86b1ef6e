"""Endpoints of stored responses: ``/v1/responses/…``."""

from __future__ import annotations

import asyncio

from .background import cancelled
from .counting import count_prompt
from .errors import not_found
from .exchange import Exchange
from .protocols.responses import RESPONSES
from .store import UNFINISHED, Kept


def _id(exchange: Exchange) -> str:
    found: str = exchange.scope["path_params"]["id"]
    return found


def _missing(id: str) -> Exception:
    return not_found(f"no response {id[:64]!r} is stored here", code="response_not_found", param="response_id")


async def _kept(exchange: Exchange) -> Kept:
    found = await asyncio.to_thread(exchange.gateway.store.get, exchange.record.owner, _id(exchange))
    if found is None:
        raise _missing(_id(exchange))
    return found


async def get_response(exchange: Exchange) -> None:
    """Return a stored response."""
    await exchange.reply((await _kept(exchange)).response)


async def cancel_response(exchange: Exchange) -> None:
    """Cancel a response that is generated in the background."""
    kept = await _kept(exchange)
    await exchange.reply(await cancelled(exchange.gateway, exchange.record.owner, kept))


async def delete_response(exchange: Exchange) -> None:
    """Remove a stored response. If it is being generated, that ends."""
    id = _id(exchange)
    if (await _kept(exchange)).response.get("status") in UNFINISHED:
        await exchange.gateway.background.stop(id)
    if not await asyncio.to_thread(exchange.gateway.store.delete, exchange.record.owner, id):
        raise _missing(id)
    await exchange.reply({"id": id, "object": "response", "deleted": True})


async def list_items(exchange: Exchange) -> None:
    """Return the input of a stored response."""
    items = (await _kept(exchange)).items
    ids = [item.get("id") for item in items]
    ends = {"first_id": ids[0], "last_id": ids[-1]} if ids else {"first_id": None, "last_id": None}
    await exchange.reply({"object": "list", "data": items, "has_more": False, **ends})


async def count_input(exchange: Exchange) -> None:
    """Return the number of tokens of a request's prompt."""
    body = await exchange.gateway.store.expanded(exchange.record.owner, exchange.body)
    request = RESPONSES.read(body, exchange.notes)
    count = await count_prompt(exchange, request)
    await exchange.reply({"object": "response.input_tokens", "input_tokens": count})
