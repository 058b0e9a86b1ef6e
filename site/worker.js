// Python in a worker: it loads the runtime and untemplate once, then answers requests in order.
import { loadPyodide } from './pyodide.mjs'

async function read (name) {
  const answer = await fetch(new URL(name, import.meta.url))
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`)
  return answer
}

async function start () {
  const library = read('library.zip').then(answer => answer.arrayBuffer())
  const code = read('start.py').then(answer => answer.text())
  const python = await loadPyodide({ indexURL: new URL('.', import.meta.url).href })
  postMessage({ state: 'Loading untemplate …' })
  python.FS.mkdirTree('/library')
  python.unpackArchive(await library, 'zip', { extractDir: '/library' })
  python.runPython('import sys; sys.path.insert(0, "/library")')
  python.runPython(await code)
  return python.globals.get('answer')
}

const ready = start()
ready.then(() => postMessage({ state: '' }), error => postMessage({ failed: String(error.message || error) }))

onmessage = async ({ data: { id, route, body } }) => {
  const answer = await ready
  let found
  try {
    found = JSON.parse(answer(route, body))
  } catch (error) {
    found = { error: `the parser failed: ${String(error.message || error).trim().split('\n').at(-1)}` }
  }
  postMessage({ id, ...found })
}
