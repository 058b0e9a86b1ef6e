'use strict'
// The page: form, requests, tabs, copies. Without a server the view is in the page itself.

// Characters of a field or a copy beyond which less is shown: browsers are slow to lay out long texts and lines.
const LONG_FIELD = 20000

const LONGEST_LINK = 1000000

// Milliseconds without a change after which the output is parsed again, where Python runs in the browser.
const PAUSE = 300

untemplate.FIELDS = ['text', 'format', 'model', 'finish', 'tools', 'prompt', 'template', 'policy', 'tokens']

untemplate.Page = class {
  constructor () {
    const { byId } = untemplate
    this.output = new untemplate.Output()
    this.time = new untemplate.Time()
    this.template = new untemplate.Template()
    this.work = 0
    this.listenToTabs()
    const listen = (id, action) => byId(id).addEventListener('click', () => this.run(action))
    byId('case').addEventListener('input', event => { this.wrap(event.target); this.parseSoon() })
    byId('examples-box').addEventListener('toggle', () => byId('examples-box').open && this.run(() => this.showExamples()))
    byId('case').addEventListener('submit', event => { event.preventDefault(); this.run(() => this.parse()) })
    listen('link', () => this.copyLink())
    listen('every-split', async () => this.time.showSplits(await this.ask('splits', this.shownCase())))
    listen('one-split', async () => this.time.showSplit(await this.ask('split', { case: this.shownCase(), at: this.time.place })))
    listen('compare', async () => this.time.showComparison(await this.ask('compare', { case: this.shownCase(), stream: byId('stream').value })))
    listen('analyse', () => this.analyse())
    byId('key').addEventListener('change', () => this.run(() => this.choices()))
    byId('copy-now').addEventListener('click', () => this.copyNow())
    byId('copy-close').addEventListener('click', () => byId('copy-box').close())
    for (const [name, write] of Object.entries(untemplate.COPIES)) {
      const copy = () => this.case && this.copy(name, write(this.case, this.output.view))
      byId('copies').append(untemplate.make('button', { type: 'button', onclick: copy }, name))
    }
    byId('views').hidden = true
  }

  async start () {
    const { byId } = untemplate
    const data = byId('data')
    if (data) {
      document.documentElement.classList.add('alone')
      byId('about').textContent = 'One output: what each part of it became and why.'
      byId('examples-box').hidden = true
      const held = JSON.parse(data.textContent)
      this.splits = held.splits
      await this.present(held.case, held.view)
      return
    }
    await this.run(() => this.choices())
    await this.run(() => this.open())
    window.addEventListener('hashchange', () => this.run(() => this.open()))
  }

  // Runs an action, and shows what went wrong. Of two actions the later one counts.
  async run (action) {
    const { byId } = untemplate
    const work = ++this.work
    byId('problem').textContent = ''
    byId('status').textContent = 'Working …'
    try {
      await action()
    } catch (error) {
      if (work === this.work) byId('problem').textContent = error.message
    }
    if (work === this.work) byId('status').textContent = ''
  }

  async ask (route, body) {
    if (untemplate.browser) return untemplate.browser.ask(route, body)
    const headers = { 'Content-Type': 'application/json' }
    const key = untemplate.byId('key').value
    if (key) headers.Authorization = `Bearer ${key}`
    const answer = await fetch(`api/${route}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const value = await answer.json()
    if (answer.status === 401) untemplate.byId('key-field').hidden = false
    if (!answer.ok) throw new Error(typeof value.error === 'string' ? value.error : value.error.message)
    return value
  }

  async choices () {
    const { byId, make } = untemplate
    const found = await this.ask('choices', {})
    this.site = found.site || ''
    byId('formats').replaceChildren(...found.formats.map(name => make('option', { value: name })))
    byId('models').replaceChildren(...found.models.map(name => make('option', { value: name })))
  }

  // Returns the case in the form. JSON fields are checked here, so that the message can name them.
  read () {
    const value = id => untemplate.byId(id).value
    const found = { text: value('text'), finish_reason: value('finish') || 'stop' }
    for (const id of ['format', 'model', 'template', 'prompt']) if (value(id).trim()) found[id] = id === 'prompt' ? value(id) : value(id).trim()
    if (value('template').trim()) found.template = value('template')
    for (const [id, label] of [['tools', 'Tools'], ['tokens', 'Tokens']]) {
      if (!value(id).trim()) continue
      try {
        found[id] = JSON.parse(value(id))
      } catch (error) {
        throw new Error(`${label}: not JSON: ${error.message}`)
      }
    }
    const policy = {}
    for (const line of value('policy').split('\n').filter(line => line.trim())) {
      const [name, ...rest] = line.split('=')
      if (!rest.length) throw new Error(`Policies: ${line}: expected NAME=VALUE`)
      const text = rest.join('=').trim()
      policy[name.trim()] = text === 'true' ? true : text === 'false' ? false : /^\d+$/.test(text) ? Number(text) : text
    }
    if (Object.keys(policy).length) found.policy = policy
    return found
  }

  // Writes a case into the form.
  fill (held) {
    const written = {
      ...Object.fromEntries(untemplate.FIELDS.map(id => [id, ''])),
      finish: held.finish_reason || 'stop',
      tools: held.tools ? JSON.stringify(held.tools) : '',
      tokens: held.tokens && held.tokens.length ? JSON.stringify(held.tokens) : '',
      policy: Object.entries(held.policy || {}).map(([name, value]) => `${name}=${value}`).join('\n')
    }
    for (const id of ['text', 'format', 'model', 'template', 'prompt']) if (typeof held[id] === 'string') written[id] = held[id]
    for (const id of untemplate.FIELDS) {
      untemplate.byId(id).value = written[id]
      this.wrap(untemplate.byId(id))
    }
    // Fields that are not seen are not laid out, so those with long texts stay closed.
    const seen = ['tools', 'tokens', 'template', 'policy', 'prompt'].map(id => written[id].length)
    document.querySelector('#case details').open = Math.max(...seen) > 0 && Math.max(...seen) <= LONG_FIELD
  }

  // Lines of a long text are not wrapped in a field: browsers would lay all of it out with every change of the page.
  wrap (field) {
    if (field.tagName === 'TEXTAREA') field.wrap = field.value.length > LONG_FIELD ? 'off' : 'soft'
  }

  shownCase () {
    if (!this.case) throw new Error('Parse an output first.')
    return this.case
  }

  async parse () {
    clearTimeout(this.timer)
    const asked = this.read()
    const view = await this.ask('parse', asked)
    await untemplate.pause()
    await this.present(asked, view)
  }

  // Parses what is in the form once nothing changes for a moment. A server is only asked if somebody wants it.
  parseSoon () {
    if (!untemplate.browser) return
    clearTimeout(this.timer)
    const { byId } = untemplate
    this.timer = setTimeout(() => {
      if (byId('text').value || byId('tokens').value) this.run(() => this.parse())
      else if (this.case && byId('view-template').hidden) this.forget()
    }, PAUSE)
  }

  // An empty field has no result.
  forget () {
    this.case = null
    untemplate.byId('views').hidden = true
  }

  // -- Examples

  async examples () {
    if (!this.known) {
      const answer = await fetch('examples.json')
      if (!answer.ok) throw new Error('The examples cannot be read.')
      this.known = await answer.json()
    }
    return this.known
  }

  async showExamples () {
    const { byId, make } = untemplate
    const groups = new Map()
    for (const [id, one] of Object.entries(await this.examples())) {
      const button = make('button', { type: 'button', onclick: () => this.run(() => this.openExample(id)) }, one.title)
      groups.set(one.group, [...(groups.get(one.group) || []), button])
    }
    byId('examples').replaceChildren(...[...groups].map(([group, buttons]) =>
      make('div', {}, make('h2', {}, group), make('p', { class: 'buttons' }, ...buttons))))
  }

  async openExample (id) {
    const found = (await this.examples())[id]
    if (!found) throw new Error(`The link is broken: there is no example ${id}.`)
    this.fill(found.case)
    await this.parse()
    untemplate.byId('status').scrollIntoView()
  }

  async present (asked, view) {
    this.case = asked
    this.shownInTime = null
    untemplate.byId('views').hidden = false
    if (!untemplate.byId('view-template').hidden) this.choose(untemplate.byId('tab-output'))
    await this.output.show(view)
    if (!untemplate.byId('view-time').hidden) this.showTime()
  }

  // Shows the steps of the output once somebody looks at them.
  showTime () {
    const { view } = this.output
    if (!view || this.shownInTime === view) return
    this.shownInTime = view
    this.time.show(view)
    if (this.splits) this.time.showSplits(this.splits)
  }

  async analyse () {
    const { text, tokens, ...asked } = this.read()
    const found = await this.ask('template', asked)
    untemplate.byId('views').hidden = false
    this.choose(untemplate.byId('tab-template'))
    this.template.show(found)
  }

  // -- Tabs

  listenToTabs () {
    const tabs = [...document.querySelectorAll('[role=tab]')]
    this.choose = tab => {
      for (const each of tabs) {
        each.setAttribute('aria-selected', String(each === tab))
        each.tabIndex = each === tab ? 0 : -1
        untemplate.byId(each.getAttribute('aria-controls')).hidden = each !== tab
      }
      tab.focus()
      if (tab.id === 'tab-time') this.showTime()
    }
    for (const tab of tabs) {
      tab.addEventListener('click', () => this.choose(tab))
      tab.addEventListener('keydown', event => {
        const seen = tabs.filter(each => each.offsetParent)
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
        const next = event.key === 'Home' ? seen[0] : event.key === 'End' ? seen.at(-1) : step && seen[(seen.indexOf(tab) + step + seen.length) % seen.length]
        if (!next) return
        event.preventDefault()
        this.choose(next)
      })
    }
  }

  // -- Links and copies

  async open () {
    const example = /^#example=([\w./+-]+)$/.exec(location.hash)
    if (example) return this.openExample(example[1])
    const found = /^#(case|z)=([\w-]+)$/.exec(location.hash)
    if (!found) return
    let held
    try {
      const bytes = Uint8Array.from(atob(found[2].replace(/-/g, '+').replace(/_/g, '/')), c => c.charCodeAt(0))
      const plain = found[1] === 'z' ? await through(bytes, new DecompressionStream('deflate-raw')) : bytes
      held = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(plain))
      if (typeof held !== 'object' || held === null) throw new Error('no object')
    } catch {
      throw new Error('The link is broken: it holds no case.')
    }
    this.fill(held)
    await this.parse()
  }

  // The case is in the fragment, which browsers send to no server. On a loopback address it leads to the site, if one is
  // known, or else it is the fragment alone: nobody else can open this machine's address.
  async copyLink () {
    const bytes = await through(new TextEncoder().encode(JSON.stringify(this.read())), new CompressionStream('deflate-raw'))
    let text = ''
    for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192))
    const hash = btoa(text).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')
    if (hash.length > LONGEST_LINK) throw new Error(`The case is too long for a link: ${hash.length} characters, of which browsers take ${LONGEST_LINK}. Copy it as a corpus case.`)
    const local = /^(localhost|127\.|\[::1\])/.test(location.hostname) && !untemplate.browser
    const place = this.site ? `${this.site.replace(/\/+$/, '')}/inspector/` : local ? '' : `${location.origin}${location.pathname}`
    this.copy('Link to this case', `${place}#z=${hash}`)
    const before = 'The link holds the whole output, the tools and the prompt: whoever gets it can read them.'
    untemplate.byId('copied').textContent = place ? before : `${before} Put it behind the address of an inspector.`
  }

  copy (title, text) {
    const { byId } = untemplate
    this.copied = text
    byId('copy-title').textContent = title
    byId('copy-text').value = text.slice(0, LONG_FIELD)
    byId('copied').textContent = text.length > LONG_FIELD ? `The first ${LONG_FIELD} of ${text.length} characters are shown. “Copy” takes all.` : ''
    byId('copy-box').showModal()
    byId('copy-text').select()
  }

  async copyNow () {
    const { byId } = untemplate
    try {
      await navigator.clipboard.writeText(this.copied)
      byId('copied').textContent = 'Copied.'
    } catch {
      byId('copy-text').value = this.copied
      byId('copy-text').select()
      byId('copied').textContent = 'The browser does not allow it: the text is selected, copy it with the keyboard.'
    }
  }
}

// Returns bytes after they have gone through a stream that compresses or decompresses.
async function through (bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer())
}

function calls (view, status) {
  return (view.message.tool_calls || []).map((call, i) => ({
    name: call.function.name,
    arguments: call.function.arguments,
    ...(status ? { status: view.calls[i].status, reason: view.calls[i].reason || undefined } : {})
  }))
}

function parsed (text) {
  try {
    return JSON.parse(text)
  } catch {
    return { not_json: text }
  }
}

const familyOf = view => view.format.toLowerCase().replace(/[^a-z0-9.-]+/g, '-')

const reasoningOf = view => view.message.reasoning || view.message.reasoning_content || ''

// A fence that is longer than any in the text.
function fenced (text) {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(found => found[0].length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${text}\n${fence}`
}

untemplate.COPIES = {
  'Corpus case': (asked, view) => JSON.stringify({
    id: 'choose-a-name',
    format: view.format,
    ...(asked.tools ? { tools: asked.tools } : {}),
    ...(asked.prompt ? { prompt: asked.prompt } : {}),
    ...(asked.finish_reason === 'stop' ? {} : { finish_reason: asked.finish_reason }),
    raw: view.text,
    expect: {
      reasoning: reasoningOf(view),
      content: view.message.content || '',
      tool_calls: calls(view, true),
      finish_reason: view.finish_reason
    },
    why: 'The rule that decides the case.'
  }, null, 2),
  'canitoolcall fixture': (asked, view) => JSON.stringify({
    id: `${familyOf(view)}/choose-a-name`,
    family: familyOf(view),
    models: [asked.model || 'org/model'],
    spec_version: '0.1',
    provenance: { kind: 'recorded', source_url: 'https://example.org/where-it-was-recorded', revision: 'of the model', license: 'NOASSERTION' },
    tools: asked.tools || [],
    raw_output: view.text,
    ...(asked.tokens ? { output_token_ids: asked.tokens.map(([id]) => id) } : {}),
    ...(asked.prompt ? { generation_prompt: asked.prompt } : {}),
    expected: {
      content: view.message.content || null,
      reasoning_content: reasoningOf(view) || null,
      tool_calls: calls(view, false).map(call => ({ name: call.name, arguments: parsed(call.arguments) }))
    },
    tags: [`${calls(view, false).length === 1 ? 'single' : calls(view, false).length ? 'parallel' : 'no'}-call`, ...(asked.finish_reason === 'length' ? ['truncated'] : [])]
  }),
  'Issue text': (asked, view) => [
    '**Raw output**', '', fenced(view.text), '',
    `**Parsed as** \`${view.format}\`${view.guessed ? ' (guessed)' : ''}, finish reason of the engine \`${asked.finish_reason}\``, '',
    ...(asked.prompt ? ['**End of the prompt**', '', fenced(asked.prompt.slice(-400)), ''] : []),
    ...(asked.tools ? ['**Tools**', '', fenced(JSON.stringify(asked.tools, null, 2)), ''] : []),
    '**Message**', '', fenced(JSON.stringify({ ...view.message, finish_reason: view.finish_reason }, null, 2)), '',
    '**Statuses of calls**: ' + (view.calls.map(call => call.status).join(', ') || 'no calls'), '',
    '**Diagnostics**', '',
    ...(view.diagnostics.length ? view.diagnostics.map(d => `* \`${d.code}\` at line ${d.line}, column ${d.column}: ${d.message}`) : ['none']), '',
    '**Expected**', '', 'What should the message be?'
  ].join('\n')
}

untemplate.page = new untemplate.Page()
untemplate.page.start()
