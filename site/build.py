"""Build the inspector as static files for any file server: ``python site/build.py build/site/inspector``.

* The page is that of ``untemplate inspect``. In place of a server it has Python in a worker (pyodide), with the
  library.
* Everything is pinned by a digest, and comes from npm's registry and the Python index. The browser fetches nothing from
  anywhere else, and sends nothing.
* What the first result needs is compiled at build time (`compile.mjs`): that takes a browser longer than anything else.
* ``manifest.json`` lists the files with their sizes and digests.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
LIBRARY: Final = ROOT / "src/untemplate"
STATIC: Final = LIBRARY / "_internal/inspector/static"

PYODIDE: Final = "pyodide@314.0.7"
PYODIDE_DIGEST: Final = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
"""SHA-512 of the package, as the registry gives it."""
RUNTIME: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
OWN: Final = ("worker.js", "browser.js", "service.js", "start.py")
LEFT_OUT: Final = {
    *("integrations", "batch", "vllm_api", "check", "testing"),
    *("_internal/cli", "_internal/conform"),
}
"""Rooms of the library that the page does not use."""
WASM: Final = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "3.14", "--abi", "cp314")
ANY: Final = ("--platform", "manylinux2014_x86_64", "--python-version", "3.11")
TIME: Final = (2020, 1, 1, 0, 0, 0)
"""The date of all files in the archive, so that the same files make the same archive."""
POLICY: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
    "trusted-types untemplate"
)


def download(folder: Path) -> None:
    """Download what is pinned, if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{PYODIDE.replace('@', '-')}.tgz"
    if not archive.exists():
        subprocess.run(["npm", "pack", "--silent", PYODIDE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != PYODIDE_DIGEST:
        archive.unlink()
        raise SystemExit(f"{PYODIDE}: its digest is {digest}, expected {PYODIDE_DIGEST}")
    if not list(folder.glob("msgspec-*.whl")):
        for name, options in (("requirements.txt", ANY), ("requirements-wasm.txt", WASM)):
            command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--only-binary=:all:", *options]
            command += ["--require-hashes", "--requirement", str(HERE / name), "--dest", str(folder)]
            subprocess.run(command, check=True)


def library(folder: Path) -> bytes:
    """Return the archive with the library and what it needs."""
    files = dict(_own_files())
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            native = "wasm32" in wheel.name
            for name in archive.namelist():
                if name.endswith(".py") or (native and name.endswith(".so")):
                    files[name] = archive.read(name)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, TIME), content, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def compiled(found: dict[str, bytes]) -> dict[str, bytes]:
    """Return both archives with compiled modules, by their names."""
    names = ("library.zip", "python_stdlib.zip")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in (*RUNTIME, "library.zip", "start.py"):
            (folder / name).write_bytes(found[name])
        command = ["node", HERE / "compile.mjs", folder, *(folder / name for name in ("start.py", *names))]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return {name: (folder / name).read_bytes() for name in names}


def _own_files() -> Iterator[tuple[str, bytes]]:
    for path in sorted(LIBRARY.rglob("*")):
        name = path.relative_to(LIBRARY)
        folders = {folder.as_posix() for folder in name.parents}
        used = not LEFT_OUT & folders and not {"__pycache__", "static", "corpus"}.intersection(name.parts)
        if used and path.suffix in (".py", ".json", ".jinja"):
            yield f"untemplate/{name.as_posix()}", path.read_bytes()


def page() -> str:
    """Return the page, with Python in the browser in the place of a server."""
    text = (STATIC / "index.html").read_text("utf-8")
    head = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    head += '<meta name="referrer" content="no-referrer">\n'
    head += (
        '<meta name="description" content="Paste what a language model wrote, and see what each part of it means.">\n'
    )
    head += '<meta property="og:title" content="untemplate inspector">\n'
    if site := os.environ.get("SITE_URL"):  # other sites want whole addresses
        head += f'<meta property="og:image" content="{html.escape(site)}previews/inspect.png">\n'
    text = text.replace("<!-- head -->", head)
    return text.replace(
        '<script src="page.js" defer>', '<script src="browser.js" defer></script>\n<script src="page.js" defer>'
    )


def files(folder: Path) -> dict[str, bytes]:
    """Return the files of the page, by their names. ``folder``: where downloads are kept."""
    download(folder)
    found = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.is_file()}
    with tarfile.open(folder / f"{PYODIDE.replace('@', '-')}.tgz") as archive:
        for name in RUNTIME:
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            found[name] = member.read()
    # The list of packages that could be loaded: none is.
    lock = json.loads(found["pyodide-lock.json"])
    found["pyodide-lock.json"] = json.dumps({**lock, "packages": {}}).encode()
    found |= {name: (HERE / name).read_bytes() for name in OWN if name != "service.js"}
    found |= {"library.zip": library(folder), "index.html": page().encode()}
    found |= compiled(found)
    digest = hashlib.sha256(b"".join(name.encode() + hashlib.sha256(found[name]).digest() for name in sorted(found)))
    names = ["./", *sorted(set(found) - {"index.html"})]
    service = (HERE / "service.js").read_text("utf-8")
    service = service.replace("/* version */", f"untemplate-{digest.hexdigest()[:16]}")
    found["service.js"] = re.sub(r"/\* files \*/", ", ".join(f"'{name}'" for name in names), service).encode()
    return found


def manifest(found: dict[str, bytes]) -> str:
    """Return the list of the files, with their sizes and digests."""
    rows = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sorted(found.items())
    }
    return json.dumps({"pyodide": PYODIDE, "files": rows}, indent=1) + "\n"


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} FOLDER")
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    found = files(ROOT / "build/inspector")
    for name, content in {**found, "manifest.json": manifest(found).encode()}.items():
        (target / name).write_bytes(content)
    print(f"{target}: {len(found)} files, {sum(map(len, found.values())) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
