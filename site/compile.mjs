// Compiles what the page imports, with the Python of the page: `node compile.mjs RUNTIME START LIBRARY STDLIB`.
// Both archives are written anew. Modules that the first result does not need stay source text, which is smaller.
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const [runtime, start, library, stdlib] = process.argv.slice(2)
const { loadPyodide } = await import(pathToFileURL(`${runtime}/pyodide.mjs`))
// The order of sets is part of compiled code.
const python = await loadPyodide({ indexURL: `${runtime}/`, env: { HOME: '/', PYTHONHASHSEED: '0' } })
const bytes = path => new Uint8Array(readFileSync(path))
python.FS.mkdirTree('/library')
python.unpackArchive(bytes(library), 'zip', { extractDir: '/library' })
python.runPython('import sys; sys.path.insert(0, "/library")')
python.runPython(readFileSync(start, 'utf8'))
const answer = python.globals.get('answer')
answer('choices', '{}')
answer('parse', JSON.stringify({ text: 'Hello.', format: 'hermes' }))

python.runPython(`
import _imp, importlib.util, io, marshal, zipfile

loaded = {name.replace(".", "/") for name in sys.modules}
UNCHECKED = (1).to_bytes(4, "little")  # the time of the source is not compared


def compiled(data):
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(written, "w") as target:
        for one in source.infolist():
            name, content = one.filename, source.read(one)
            if name.endswith(".py") and name.removesuffix(".py").removesuffix("/__init__") in loaded:
                code = marshal.dumps(compile(content, name, "exec", dont_inherit=True, optimize=2))
                content = importlib.util.MAGIC_NUMBER + UNCHECKED + _imp.source_hash(0, content) + code
                name += "c"
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            target.writestr(info, content, zipfile.ZIP_DEFLATED, 9)
    return written.getvalue()
`)
const compiled = python.globals.get('compiled')
for (const path of [library, stdlib]) writeFileSync(path, compiled(python.toPy(bytes(path)).tobytes()).toJs())
