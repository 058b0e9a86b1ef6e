'use strict'
// The view of an output: regions, message, calls, diagnostics.

untemplate.Output = class {
  constructor () {
    const { byId, TextView, Link } = untemplate
    this.link = new Link((view, mark) => this.say(view, mark))
    this.raw = new TextView(byId('raw'), 'What the model wrote. Arrow keys move from region to region.', this.link)
    this.message = new TextView(byId('message'), 'What a client gets, as JSON.', this.link)
    this.link.views.push(this.raw, this.message)
    byId('more-regions').addEventListener('click', () => this.listRegions())
    byId('regions-box').addEventListener('toggle', () => {
      if (byId('regions-box').open && !byId('regions').children.length) this.listRegions()
    })
    byId('legend').replaceChildren(...untemplate.KINDS.map(kind => untemplate.make('span', { class: `chip ${kind}` }, kind)),
      untemplate.make('span', { class: 'chip special' }, 'special token'))
  }

  async show (view) {
    this.view = view
    const { byId } = untemplate
    byId('summary').textContent = this.summary()
    this.showCalls()
    this.showDiagnostics()
    this.listed = 0
    byId('regions').replaceChildren()
    this.marks = untemplate.marksOf(view)
    this.raw.set(view.text, this.marks, { showsNewlines: true, cuts: view.tokens, notes: view.diagnostics.filter(d => d.end > d.start) })
    await untemplate.pause()
    if (this.view !== view) return
    const written = untemplate.jsonText(view.message, untemplate.keyOfPath)
    this.message.set(written.text, written.marks)
    if (byId('regions-box').open) this.listRegions()
  }

  summary () {
    const { view } = this
    const parts = []
    if (view.message.reasoning || view.message.reasoning_content) parts.push('reasoning')
    if (view.message.content) parts.push('content')
    parts.push(`${view.calls.length} call${view.calls.length === 1 ? '' : 's'}`)
    const notes = view.diagnostics.length
    return `${view.read ? `${view.read}. ` : ''}Format ${view.format}${view.guessed ? ', guessed from the output' : ''}: ${parts.join(', ')}; finish_reason ${view.finish_reason}; ` +
      `${notes} diagnostic${notes === 1 ? '' : 's'}.`
  }

  say (view, mark) {
    if (!mark) return
    const part = untemplate.visible(view.text.slice(mark.start, Math.min(mark.end, mark.start + 160)))
    const call = mark.call === null || mark.call === undefined ? '' : ` of call ${mark.call + 1}`
    const special = mark.special ? ', a special token' : ''
    const where = view === this.raw ? `, characters ${mark.start} to ${mark.end}` : ''
    untemplate.byId('current').textContent = `${mark.kind}${call}${special}${where}: ${part}`
  }

  showCalls () {
    const { byId, make } = untemplate
    if (!this.view.calls.length) {
      byId('calls').replaceChildren(make('p', {}, 'The message has no calls.'))
      return
    }
    const rows = this.view.calls.map((call, i) => {
      const repairs = [...call.repairs, ...(call.model_id ? [`the model's own id is ${call.model_id}`] : [])]
      const status = make('td', { class: call.status === 'ok' ? 'good' : 'bad' }, call.status)
      const name = make('td', { class: 'mono' }, untemplate.visible(call.name))
      return make('tr', {}, make('td', {}, String(i + 1)), name, status, make('td', {}, repairs.join(', ')))
    })
    const heads = ['call', 'name', 'status', 'remarks'].map(head => make('th', { scope: 'col' }, head))
    byId('calls').replaceChildren(make('table', {}, make('tr', {}, ...heads), ...rows))
  }

  showDiagnostics () {
    const { byId, make } = untemplate
    const items = this.view.diagnostics.map(found => {
      const go = make('button', { type: 'button', onclick: () => this.go(found.start) }, `line ${found.line}, column ${found.column}`)
      const text = make('code', {}, untemplate.visible(found.text))
      const name = make('strong', {}, found.code)
      const code = untemplate.browser ? make('a', { href: `../diagnostics/#${found.code}` }, name) : name
      return make('li', {}, code, ' at ', go, `: ${found.message} `, text, make('div', { class: 'advice' }, found.advice || ''))
    })
    byId('diagnostics').replaceChildren(items.length ? make('ul', {}, ...items) : make('p', {}, 'None: the output follows the format.'))
  }

  go (place) {
    this.raw.show(place)
    const index = untemplate.lastAt(this.marks, place, mark => mark.start)
    if (index >= 0) this.raw.select(index)
    this.raw.element.focus()
  }

  // Lists the next 100 regions, for those who cannot see colours.
  listRegions () {
    const { byId, make } = untemplate
    const next = this.marks.slice(this.listed, this.listed + 100)
    const items = next.map((mark, i) => {
      const number = this.listed + i
      const text = untemplate.visible(this.view.text.slice(mark.start, Math.min(mark.end, mark.start + 80)))
      const call = mark.call === null ? '' : ` of call ${mark.call + 1}`
      const go = make('button', { type: 'button', onclick: () => { this.raw.select(number); this.raw.element.focus() } }, text)
      return make('li', {}, `${mark.kind}${call}: `, go)
    })
    byId('regions').append(...items)
    this.listed += next.length
    byId('more-regions').hidden = this.listed >= this.marks.length
  }
}

// Returns the marks of an output: its regions, with the special tokens apart.
untemplate.marksOf = function (view) {
  const marks = []
  const special = [...view.special].sort((a, b) => b.length - a.length)
  const pattern = special.length ? new RegExp(special.map(text => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'), 'g') : null
  for (const [kind, start, end, call] of view.spans) {
    const key = untemplate.keyOf(kind, call)
    let at = start
    if (pattern && (kind === 'markup' || kind === 'dropped')) {
      for (const found of view.text.slice(start, end).matchAll(pattern)) {
        const from = start + found.index
        if (from > at) marks.push({ start: at, end: from, kind, call, key })
        at = from + found[0].length
        marks.push({ start: from, end: at, kind, call, key, special: true })
      }
    }
    if (at < end) marks.push({ start: at, end, kind, call, key })
  }
  return marks
}

// Returns the name that joins a region with its part of the message.
untemplate.keyOf = (kind, call) => call === null ? kind : `${kind} ${call}`

untemplate.keyOfPath = function (path) {
  if (path === 'reasoning' || path === 'reasoning_content') return ['reasoning', 'reasoning']
  if (path === 'content') return ['content', 'content']
  const found = /^tool_calls\.(\d+)\.(?:(id)|function\.(name|arguments))$/.exec(path)
  if (!found) return null
  const kind = found[2] || found[3]
  return [kind, `${kind} ${found[1]}`]
}
