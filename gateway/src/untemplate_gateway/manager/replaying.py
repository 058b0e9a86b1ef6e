"""The models of the engine ``replay``, which need no model."""

from __future__ import annotations

import time

from untemplate._internal.output_parser import OutputParser
from untemplate._internal.suggestions import brief
from untemplate.format import FormatError
from untemplate.formats import IncompatibleFormatsError, UnknownFormatError
from untemplate.selection import select

from ..engines.replay import ReplayEngine, example_formats, load_recordings
from ..settings import Settings, SettingsError
from .choices import REPLAY, load_template
from .model import Model


def replay_models(settings: Settings) -> list[Model]:
    """Return a model for each format with a bundled example, or one model if a format is named.

    Raises:
        SettingsError: an unknown format, a missing template, or recordings that cannot be read.
    """
    given, speed = load_template(settings), settings.replay.speed
    found = REPLAY.fullmatch(settings.model)
    only = (found[1] if found else None) or settings.enforce_parser or settings.tool_parser
    formats = example_formats()
    try:
        if only and (settings.reasoning_parser or settings.replay.file or only not in formats):
            formats[only] = select(enforce=only, reasoning=settings.reasoning_parser or None).format
    except (FormatError, UnknownFormatError, IncompatibleFormatsError) as error:
        raise SettingsError(f"model: {brief(error)}") from None
    recordings = None
    if settings.replay.file:
        if not only:
            raise SettingsError(
                "replay.file: needs the format of the outputs: replay:FORMAT (`untemplate formats` lists them)"
            )
        recordings = load_recordings(settings.replay.file, formats[only])
    models: list[Model] = []
    for name in [only] if only else formats:
        engine = ReplayEngine(formats[name], recordings, speed=speed)
        fmt, policy = engine.format, settings.output_policy()
        called = (only and settings.name) or name
        models.append(
            Model(
                name=called,
                engine=engine,
                parser=OutputParser.from_format(fmt, tokenizer=engine.tokenizer, policy=policy),
                template=given or engine.template(),
                created=int(time.time()),
                aliases=("replay",) if not models and called != "replay" else (),
                details={"family": fmt.name, "format": "replay", "parser": fmt.name, "engine": "replay"},
                template_kwargs=settings.chat_template_kwargs,
                neutralize_markers=settings.neutralize_markers,
            )
        )
    return models
