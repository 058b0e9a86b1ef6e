"""Data sets of Ray: the rows of a cluster, parsed by actors that keep their parsers.

Retries, backpressure, ordering and checkpoints are Ray's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from .._internal.options import check_names, spelled_out
from ..format import Format
from ._many import BatchOptions, settings_for
from ._rows import RowParser, Settings
from .arrow import parse_table

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["ParseRows", "parse_dataset"]


class ParseRows:
    """The actor class: adds the results to each batch, which is an Arrow table. For ``Dataset.map_batches``."""

    def __init__(self, settings: Settings) -> None:
        self._parser = RowParser(settings)

    def __call__(self, table: Any) -> Any:
        return parse_table(self._parser, table)


@spelled_out(BatchOptions)
def parse_dataset(
    ds: Dataset,
    format: str | Format | None = None,
    *,
    actors: int | None = None,
    batch_size: int = 1024,
    options: Mapping[str, Any] | None = None,
    **rows: Unpack[BatchOptions],
) -> Dataset:
    """Return a data set with the results as additional columns. As every operation of Ray Data it is lazy.

    Args:
        ds: a data set with a row for each output.
        format, reasoning, policy, tokenizer, columns, spans: as for `settings_for`; a tokenizer is best given as the
            file, folder or hub id that each actor loads it from.
        actors: number of actors; default: one to as many as the cluster has cores, as there is work.
        batch_size: rows that an actor takes at once.
        options: further arguments of ``Dataset.map_batches``, such as ``num_cpus``.

    Raises:
        ValueError: as `settings_for`.
    """
    check_names("parse_dataset", rows, BatchOptions)
    settings = settings_for(format, **rows)
    data = import_module("ray.data")
    cores = max(1, int(import_module("ray").cluster_resources().get("CPU", 1)))
    pool = data.ActorPoolStrategy(size=actors) if actors else data.ActorPoolStrategy(min_size=1, max_size=cores)
    return ds.map_batches(
        ParseRows,
        fn_constructor_kwargs={"settings": settings},
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=pool,
        **(options or {}),
    )
