'use strict'
// The view of a parse in time: what is held back and why, splits, and the stream of a server.

untemplate.Time = class {
  constructor () {
    const { byId, TextView } = untemplate
    this.raw = new TextView(byId('time-raw'), 'The output: decided, held back, and not received.')
    this.message = new TextView(byId('time-message'), 'The message so far, as JSON.')
    this.range = byId('place')
    this.range.addEventListener('input', () => this.go(Number(this.range.value)))
    byId('back').addEventListener('click', () => this.go(this.step - 1))
    byId('forward').addEventListener('click', () => this.go(this.step + 1))
    byId('next-change').addEventListener('click', () => this.goToNextChange())
  }

  show (view) {
    this.view = view
    this.marks = untemplate.marksOf(view)
    this.runs = new Map() // field → runs of growth, in order
    for (const [place, field, length, steps] of view.growth) {
      if (!this.runs.has(field)) this.runs.set(field, [])
      this.runs.get(field).push({ place, length, steps })
    }
    // A step is a token, or a character. The last one is the end of the output.
    this.steps = view.tokens.length ? view.tokens.length + 1 : view.text.length + 1
    this.range.max = String(this.steps)
    untemplate.byId('splits').replaceChildren()
    untemplate.byId('comparison').replaceChildren()
    this.go(this.steps)
  }

  // Returns the place in the output after a step.
  placeOf (step) {
    if (step >= this.steps) return this.view.text.length + 1
    return this.view.tokens.length ? (step ? this.view.tokens[step - 1] : 0) : step
  }

  get place () { return Math.min(this.placeOf(this.step), this.view.text.length) }

  // Returns the length of a field of the message after a place.
  lengthAt (field, place) {
    const runs = this.runs.get(field) || []
    const index = untemplate.lastAt(runs, place, run => run.place)
    if (index < 0) return 0
    const run = runs[index]
    return run.length + Math.min(place - run.place, run.steps - 1)
  }

  // Returns what the machine reads after a place, and where the text that it holds back begins.
  stateAt (place) {
    const index = untemplate.lastAt(this.view.states, place, state => state[0])
    if (index < 0) return { mode: '', reader: '', state: '', why: '', decided: null }
    const [, kind, decided] = this.view.states[index]
    const [mode, reader, state, why] = this.view.kinds[kind]
    return { mode, reader, state, why, decided }
  }

  go (step) {
    if (!this.view) return
    this.step = Math.min(Math.max(step, 0), this.steps)
    this.range.value = String(this.step)
    const place = this.placeOf(this.step)
    const state = this.stateAt(place)
    const received = Math.min(place, this.view.text.length)
    const decided = state.decided === null ? received : Math.min(state.decided, received)
    this.raw.set(this.view.text, this.marks, { showsNewlines: true, cuts: this.view.tokens, limits: { received, decided }, at: Math.max(received - 1, 0) })
    const written = untemplate.jsonText(this.messageAt(place), untemplate.keyOfPath)
    this.message.set(written.text, written.marks)
    this.describe(place, state, received, decided)
  }

  messageAt (place) {
    const { message } = this.view
    const cut = (text, field) => text.slice(0, this.lengthAt(field, place))
    const found = { role: 'assistant' }
    for (const name of ['reasoning', 'reasoning_content']) {
      const text = typeof message[name] === 'string' ? cut(message[name], 0) : ''
      if (text) found[name] = text
    }
    const content = typeof message.content === 'string' ? cut(message.content, 1) : ''
    if (content) found.content = content
    const calls = (message.tool_calls || []).map((call, i) => [call, i]).filter(([, i]) => this.lengthAt(2 + 2 * i, place))
    if (calls.length) {
      found.tool_calls = calls.map(([call, i]) => ({
        id: call.id,
        type: call.type,
        function: { name: call.function.name, arguments: cut(call.function.arguments, 3 + 2 * i) }
      }))
    }
    return found
  }

  describe (place, state, received, decided) {
    const { byId, make } = untemplate
    const unit = this.view.tokens.length ? 'tokens' : 'characters'
    const ended = this.step >= this.steps
    const text = ended ? 'the output has ended' : `${this.step} of ${this.steps - 1} ${unit}`
    byId('place-text').textContent = text
    this.range.setAttribute('aria-valuetext', text)
    const held = this.view.text.slice(decided, received)
    const rows = [
      ['the machine reads', state.mode + (state.reader ? `: ${state.reader}` : '')],
      ['in state', state.state],
      ['held back', held && !ended ? `${held.length} characters: ${untemplate.visible(held.slice(0, 200))}` : 'nothing'],
      ['because', held && !ended ? state.why : '']
    ]
    byId('state').replaceChildren(...rows.filter(row => row[1]).flatMap(([name, value]) => [make('dt', {}, name), make('dd', { class: 'mono' }, value)]))
  }

  // Goes to the next step after which the machine does something else.
  goToNextChange () {
    const place = this.placeOf(this.step)
    const next = this.view.states.find(state => state[0] > place)
    if (!next) return this.go(this.steps)
    if (!this.view.tokens.length) return this.go(next[0])
    this.go(untemplate.lastAt(this.view.tokens, next[0] - 1, end => end) + 2)
  }

  showSplits (found) {
    const { byId, make } = untemplate
    const same = !found.different.length
    const all = found.tried === found.splits ? 'All' : `${found.tried} of the`
    const text = same ? `${all} ${found.splits} cuts give the same message.` : `${found.different.length} of ${found.tried} cuts give another message.`
    const places = found.different.slice(0, 50).map(place => make('button', { type: 'button', onclick: () => this.go(place) }, `at ${place}`))
    byId('splits').replaceChildren(make('p', { class: same ? 'good' : 'bad' }, text), make('p', { class: 'buttons' }, ...places))
  }

  showSplit (found) {
    const { byId, make } = untemplate
    const lines = deltas => deltas.length ? deltas.map(delta => untemplate.visible(JSON.stringify(delta))).join('\n') : 'no deltas'
    const rows = [['first part', found.first], ['second part', found.second], ['end', found.end]]
    const cells = rows.map(([name, deltas]) => make('tr', {}, make('th', { scope: 'row' }, name), make('td', { class: 'mono' }, lines(deltas))))
    const verdict = found.same ? 'The message is the same as that of the whole output.' : 'The message differs from that of the whole output.'
    byId('splits').replaceChildren(make('p', { class: found.same ? 'good' : 'bad' }, `Cut at ${found.at}. ${verdict}`), make('table', {}, ...cells))
  }

  showComparison (found) {
    const { byId, make } = untemplate
    if (!found.differences.length) {
      byId('comparison').replaceChildren(make('p', { class: 'good' }, `All ${found.events} events agree with the right message.`))
      return
    }
    const items = found.differences.map(one => {
      const when = one.event > found.events ? `at the end of the ${found.events} events` : `event ${one.event} of ${found.events}`
      const rows = [['where', one.path], ['right', one.expected], ['sent', one.got || 'nothing'], ['known reports', one.reports.join(', ') || 'none']]
      const table = make('table', {}, ...rows.map(([name, value]) => make('tr', {}, make('th', { scope: 'row' }, name), make('td', { class: 'mono' }, untemplate.visible(value)))))
      return make('li', {}, make('span', { class: one.minor ? '' : 'bad' }, `${one.title}: ${when}`), table)
    })
    byId('comparison').replaceChildren(make('ol', {}, ...items))
  }
}
