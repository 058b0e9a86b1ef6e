"""Models on the Hugging Face hub, and in the local cache of huggingface_hub.

* A name is ``org/repo``, ``org/repo:Q4_K_M`` or ``org/repo:file.gguf``. From a GGUF repository, one quantization is
  downloaded; from any other, the safetensors and the files that belong to them.
* A model that is complete on disk is never requested from the hub again.
* Every failure is a `HubError` with the remedy.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from untemplate._internal.installed import install_command
from untemplate.errors import HubError

from .checkpoint import Checkpoint, CheckpointError, ggufs, open_checkpoint, quantization_of, read_json, size_text

__all__ = ["HubError", "Plan", "cached", "fetch_tokenizer", "find", "is_hub_name", "plan", "pull", "remove"]

_NAME: Final = re.compile(r"(\w[\w.-]*/\w[\w.-]*?)(?::([\w./-]+))?")
_PREFERRED: Final = ("Q4_K_M", "UD-Q4_K_XL", "Q4_K_S", "Q4_0", "MXFP4", "Q5_K_M", "Q6_K", "Q8_0", "BF16", "F16")
"""Quantizations to prefer if none is named; the first that exists is used."""
_BESIDE: Final = (
    *("*.json", "*.jinja", "*.model", "*.tiktoken", "*.txt", "*.py", "README.md"),
    "additional_chat_templates/*.jinja",
)
"""Files that belong to a safetensors model."""
_SMALL: Final = (
    *("tokenizer*.json", "added_tokens.json", "tekken.json", "*.tiktoken", "*.model", "vocab.json", "merges.txt"),
    *("config.json", "special_tokens_map.json", "chat_template.*", "additional_chat_templates/*.jinja"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The files that `pull` downloads."""

    repo: str
    files: Mapping[str, int]
    """Path in the repository → bytes."""
    main: str
    """The GGUF file (its first part); ``""`` if the whole folder is the model."""
    revision: str | None = None
    """The branch, tag or commit that was asked for; ``None`` for ``main``."""

    @property
    def size(self) -> int:
        return sum(self.files.values())


def is_hub_name(name: str) -> bool:
    """True if the name has the form of a hub name, and no such file or folder exists."""
    return _NAME.fullmatch(name) is not None and not name.endswith(".gguf") and not os.path.exists(name)


def _split(name: str) -> tuple[str, str]:
    found = _NAME.fullmatch(name)
    if found is None:
        raise HubError(f"{name!r} is not a name on the hub; expected org/repo, org/repo:Q4_K_M or org/repo:FILE.gguf")
    return found[1], found[2] or ""


# -- On disk ------------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Return the cache folder of huggingface_hub."""
    for variable, tail in (("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")):
        if os.environ.get(variable):
            return Path(os.environ[variable], tail).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "huggingface", "hub").expanduser()


def find(name: str) -> Checkpoint | None:
    """Return a model that is complete on disk; ``None`` if it is not.

    Raises:
        HubError: the name is not a hub name.
    """
    repo, selector = _split(name)
    for folder in _snapshots(repo):
        for found in _models(folder, repo):
            if not selector or _matches(found, folder, selector):
                return found
    return None


def cached() -> list[Checkpoint]:
    """Return every model in the cache, sorted by name. Data sets, and models without weights on disk, are left out."""
    found: dict[str, Checkpoint] = {}
    for path in sorted(cache_folder().glob("models--*--*")):
        repo = path.name.removeprefix("models--").replace("--", "/")
        for folder in _snapshots(repo):
            for checkpoint in _models(folder, repo):
                found.setdefault(checkpoint.name, checkpoint)
    return [found[name] for name in sorted(found)]


def remove(models: Sequence[Checkpoint]) -> int:
    """Delete all models of their repositories. Return the number of bytes freed.

    Raises:
        HubError: another model belongs to one of the repositories.
    """
    gone, repos = {model.name for model in models}, {model.repo for model in models}
    kept = [model.name for model in cached() if model.repo in repos and model.name not in gone]
    if kept:
        raise HubError(f"repositories are deleted as a whole, and {', '.join(kept)} would go as well: name it, too")
    scanned = _package().scan_cache_dir(cache_folder())
    found = [repo for repo in scanned.repos if repo.repo_type == "model" and repo.repo_id in repos]
    strategy = scanned.delete_revisions(*(revision.commit_hash for repo in found for revision in repo.revisions))
    strategy.execute()
    return int(strategy.expected_freed_size)


def _snapshots(repo: str) -> Iterator[Path]:
    """Yield the folders of a repository's commits on disk: first the one that ``main`` names, then the newest first."""
    base = cache_folder() / f"models--{repo.replace('/', '--')}"
    try:
        head = (base / "refs" / "main").read_text("ascii").strip()
    except (OSError, ValueError):
        head = ""
    folders = [path for path in (base / "snapshots").glob("*") if path.is_dir()]
    yield from sorted(folders, key=lambda path: (path.name != head, -path.stat().st_mtime))


def _models(folder: Path, repo: str) -> Iterator[Checkpoint]:
    """Yield the complete models in a snapshot."""
    names = [str(path.relative_to(folder)) for path in folder.rglob("*.gguf") if path.exists()]
    for first in ggufs(names):
        try:
            yield open_checkpoint(folder / first, repo=repo, name=_called(repo, first))
        except CheckpointError:
            continue
    if not names:
        try:
            found = open_checkpoint(folder, repo=repo)
        except CheckpointError:
            return
        listed = read_json(folder / "model.safetensors.index.json").get("weight_map")
        wanted = {folder / str(file) for file in listed.values()} if isinstance(listed, dict) else set()
        if all(os.path.exists(file) for file in (*found.files, *wanted)):
            yield found


def _called(repo: str, file: str) -> str:
    return f"{repo}:{quantization_of(file) or file}"


def _matches(checkpoint: Checkpoint, folder: Path, selector: str) -> bool:
    if checkpoint.kind != "gguf":
        return False
    return _selects(selector, str(checkpoint.path.relative_to(folder)))


def _selects(selector: str, file: str) -> bool:
    """True if a selector names this file: its quantization, its name, or its path in the repository."""
    low, path = selector.lower(), file.lower()
    return low in (quantization_of(file).lower(), path, path.rpartition("/")[2])


# -- On the hub ---------------------------------------------------------------------------------------------------


def plan(name: str, *, revision: str | None = None) -> Plan:
    """Return the files to download for a name.

    Raises:
        HubError: the model is not available; the message has the remedy.
    """
    repo, selector = _split(name)
    with _explained(repo):
        info = _package().HfApi(endpoint=_endpoint()).model_info(repo, revision=revision, files_metadata=True)
    sizes = {str(file.rfilename): int(file.size or 0) for file in info.siblings or ()}
    main, files = _chosen(repo, selector, sizes)
    return Plan(repo, {file: sizes[file] for file in files}, main, revision)


def _chosen(repo: str, selector: str, sizes: Mapping[str, int]) -> tuple[str, list[str]]:
    """Return the GGUF file, or ``""``, and all files to download."""
    models = ggufs(list(sizes))
    if not models:
        if selector:
            raise HubError(f"{repo} has no GGUF files, so there is no {selector!r} to choose; leave it out")
        weights = [f for f in sizes if f.endswith(".safetensors") and "/" not in f]
        # Mistral's repositories contain the weights twice.
        whole = [f for f in weights if not f.startswith("consolidated")]
        if not weights:
            raise HubError(f"{repo} has neither GGUF files nor safetensors: it holds no model that can be served")
        return "", sorted({*(whole or weights), *(f for f in sizes if _is_beside(f))})
    wanted = [file for file in models if _selects(selector, file)] if selector else []
    if not selector:
        by_name = {quantization_of(file): file for file in reversed(models)}
        wanted = [by_name[q] for q in _PREFERRED if q in by_name][:1] or (list(models) if len(models) == 1 else [])
    if not wanted:
        problem = f"{repo} has no {selector!r}" if selector else f"{repo} holds several models"
        raise HubError(f"{problem}; available: {_listed(models, sizes)}")
    return wanted[0], models[wanted[0]]


def _is_beside(file: str) -> bool:
    return any(Path(file).match(pattern) and file.count("/") == pattern.count("/") for pattern in _BESIDE)


def _listed(models: Mapping[str, Sequence[str]], sizes: Mapping[str, int]) -> str:
    return ", ".join(
        f"{quantization_of(first) or first} ({size_text(sum(sizes[part] for part in parts))})"
        for first, parts in models.items()
    )


def pull(plan: Plan, *, quiet: bool = False) -> Checkpoint:
    """Download the files of a plan that are not on disk yet. Progress bars go to stderr.

    Raises:
        HubError: a file cannot be downloaded; the message has the remedy.
    """
    package = _package()
    folder = cache_folder()
    was_quiet = package.utils.are_progress_bars_disabled()
    if quiet:
        package.utils.disable_progress_bars()
    try:
        with _explained(plan.repo):
            path = package.snapshot_download(
                plan.repo,
                revision=plan.revision,
                allow_patterns=[glob.escape(file) for file in plan.files],
                cache_dir=folder,
                endpoint=_endpoint(),
            )
    finally:
        if quiet and not was_quiet:
            package.utils.enable_progress_bars()
    try:
        where = Path(path, plan.main) if plan.main else Path(path)
        return open_checkpoint(where, repo=plan.repo, name=_called(plan.repo, plan.main) if plan.main else plan.repo)
    except CheckpointError as error:
        raise HubError(str(error)) from None


def fetch_tokenizer(repo: str) -> Path:
    """Return a folder with the tokenizer, the configuration and the chat template of a repository.

    Raises:
        HubError: they cannot be downloaded.
    """
    package = _package()
    with _explained(repo):
        return Path(
            package.snapshot_download(repo, allow_patterns=list(_SMALL), cache_dir=cache_folder(), endpoint=_endpoint())
        )


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _package() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        command = install_command("untemplate-gateway", "hub")
        raise HubError(f"models on the hub need the package huggingface_hub: {command}") from None
    return huggingface_hub


@contextmanager
def _explained(repo: str) -> Iterator[None]:
    """Turn errors of huggingface_hub into `HubError`. The order counts: a gated repository is also "not found"."""
    _package()
    from huggingface_hub import errors

    site = _endpoint() or "https://huggingface.co"
    log_in = "log in with `hf auth login`, or set HF_TOKEN"
    try:
        yield
    except HubError:
        raise
    except errors.GatedRepoError:
        raise HubError(f"{repo} is gated: agree to its terms at {site}/{repo}, and {log_in}") from None
    except errors.RepositoryNotFoundError:
        raise HubError(f"{repo}: no such repository; if it is private, {log_in}") from None
    except errors.RevisionNotFoundError:
        raise HubError(f"{repo}: there is no such revision") from None
    except Exception as error:
        line = next((line.strip() for line in str(error).split("\n") if line.strip()), type(error).__name__)
        away = type(error).__module__.startswith(("httpx", "requests"))
        if away or isinstance(error, (ConnectionError, errors.LocalEntryNotFoundError)):
            problem = f"the hub cannot be reached ({line}); `untemplate list` shows what is on disk"
            raise HubError(f"{repo}: {problem}") from None
        answers = "the hub answers: " if isinstance(error, errors.HfHubHTTPError) else ""
        raise HubError(f"{repo}: {answers}{line}") from None
