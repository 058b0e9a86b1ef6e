"""The names by which requests ask for models.

* A model has its name and its aliases while it is offered or loaded. The settings add aliases.
* Ollama's tag ``:latest`` may follow any name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from untemplate.errors import close_names, did_you_mean

if TYPE_CHECKING:
    from .model import Model
    from .offers import Offers


class Names:
    """The names of one manager's models.

    Args:
        aliases: names that the settings add → the model that each stands for; ``""`` for the only one.
        any_name: an unknown name means the only model.
    """

    def __init__(self, aliases: Mapping[str, str], *, any_name: bool) -> None:
        self.offers: Offers | None = None
        self._aliases = dict(aliases)
        self._any_name = any_name
        self._loaded: dict[str, str] = {}
        """Names and aliases of the loaded models → the names of the models."""

    def find(self, name: str) -> str | None:
        """Return the name of the model that has this name or alias; ``None`` if none has. An empty name means the
        only model.
        """
        for one in dict.fromkeys((name, name.removesuffix(":latest"))):
            found = self._model(one)
            if found is None and one in self._aliases:
                found = self._model(self._aliases[one])
            if found is not None:
                return found
        return None

    def find_for_request(self, name: str) -> str | None:
        """Return the name of the model that a request means. As `find`, but ``any_name`` has an effect."""
        found = self.find(name)
        return self._only() if found is None and self._any_name else found

    def _model(self, name: str) -> str | None:
        if not name:
            return self._only()
        offered = None if self.offers is None else self.offers.name_of(name)
        return offered or self._loaded.get(name)

    def _only(self) -> str | None:
        models = () if self.offers is None else self.offers.names()
        models = models or tuple(dict.fromkeys(self._loaded.values()))
        return models[0] if len(models) == 1 else None

    def replace(self, old: Iterable[Model], new: Iterable[Model] = ()) -> None:
        """Give new models their names and aliases, which may be those of the old models.

        Raises:
            ValueError: a name belongs to another model; nothing has changed.
        """
        gone = {name for model in old for name in (model.name, *model.aliases)}
        loaded = {name: model for name, model in self._loaded.items() if name not in gone}
        for model in new:
            for name in (model.name, *model.aliases):
                if name in loaded or (name in self._aliases and name != model.name):
                    raise ValueError(f"the name {name!r} of model {model.name!r} belongs to another model")
            loaded |= dict.fromkeys((model.name, *model.aliases), model.name)
        self._loaded = loaded

    def _taken(self) -> set[str]:
        """Return the names and aliases of all models."""
        return {*self._loaded, *self._aliases, *(() if self.offers is None else self.offers.all_names())}

    # -- Messages ------------------------------------------------------------------------------------------------

    def listed(self) -> str:
        """Return the names of all models, for an error message."""
        offered = () if self.offers is None else self.offers.names()
        return ", ".join(dict.fromkeys((*offered, *self._loaded.values()))) or "none"

    def unknown(self, name: str) -> str:
        """Return the message for a name that means no model."""
        hint = did_you_mean(close_names(name, sorted(self._taken() - {name}), 1))
        which = f"the model {name!r} does not exist" if name else "no model is loaded"
        return f"{which}{hint} (models: {self.listed()})"
