"""The models of the engine ``replay``, which answers with recorded outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from untemplate._internal.output_parser import OutputParser
from untemplate._internal.suggestions import brief
from untemplate.format import FormatError
from untemplate.formats import IncompatibleFormatsError, UnknownFormatError
from untemplate.selection import select
from untemplate.templates import ChatTemplate

from ..engines.replay import ReplayEngine, bundled, load_recordings
from ..settings import Settings, SettingsError
from .choices import REPLAY, load_template
from .model import Model


async def replay_models(settings: Settings) -> list[Model]:
    """Return a model for each format with bundled recordings, or one model if a format or a file is named.

    Raises:
        SettingsError: an unknown format, a missing template, or recordings that cannot be read.
    """
    given = load_template(settings)
    found = REPLAY.fullmatch(settings.model)
    only = (found[1] if found else None) or settings.enforce_parser or settings.tool_parser
    engines: list[tuple[str, ReplayEngine]]
    try:
        if settings.replay.file:
            if not only:
                raise SettingsError(
                    "replay.file: needs the format of the outputs: replay:FORMAT (`untemplate formats` lists them)"
                )
            fmt = select(enforce=only, reasoning=settings.reasoning_parser or None).format
            recordings = load_recordings(settings.replay.file, fmt)
            engines = [(only, ReplayEngine(fmt, recordings, speed=settings.replay.speed))]
        else:
            names: Sequence[str] = [only] if only else list(bundled())
            engines = [(name, ReplayEngine(name, speed=settings.replay.speed)) for name in names]
    except (FormatError, UnknownFormatError, IncompatibleFormatsError) as error:
        raise SettingsError(f"model: {brief(error)}") from None
    if settings.name and len(engines) == 1:
        engines = [(settings.name, engines[0][1])]
    models: list[Model] = []
    for name, engine in engines:
        await engine.start()
        models.append(_replayed(settings, name, engine, given, first=not models))
    return models


def _replayed(settings: Settings, name: str, engine: ReplayEngine, given: ChatTemplate | None, *, first: bool) -> Model:
    parser = OutputParser.from_format(
        engine.format, tokenizer=engine.vocabulary(), policy=settings.output_policy(), special_text="kept"
    )
    return Model(
        name=name,
        engine=engine,
        parser=parser,
        template=given or engine.template(),
        created=int(time.time()),
        aliases=("replay",) if first and name != "replay" else (),
        details={"family": engine.format.name, "format": "replay", "parser": engine.format.name, "engine": "replay"},
        template_kwargs=settings.chat_template_kwargs,
        neutralize_markers=settings.neutralize_markers,
    )
