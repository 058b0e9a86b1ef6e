'use strict'
// The view of a template, a model or a format.

untemplate.Template = class {
  show (found) {
    const { byId, make } = untemplate
    const box = byId('analysis')
    const title = text => make('h2', {}, text)
    box.replaceChildren(...[
      make('p', {}, this.headline(found)),
      ...(found.turn ? [title('A turn, as it is written'), ...this.turn(found)] : []),
      ...(found.certificate ? [title('Certificate'), this.certificate(found.certificate)] : []),
      title('Lint'), this.lint(found.lint),
      ...(found.analysis ? [title('What the comparisons found'), this.found(found.analysis)] : []),
      ...(found.selection ? [title('Choice'), this.choice(found.selection)] : []),
      ...(found.coverage ? [this.long('The template; ! marks lines with a branch that was never rendered', this.covered(found.coverage))] : []),
      this.long('Format as JSON', JSON.stringify(found.format, null, 2)),
      ...Object.entries(found.grammars).map(([dialect, text]) => this.long(`Grammar: ${dialect}`, text))
    ])
    if (found.turn) this.fill(found.turn)
  }

  headline (found) {
    const { certificate } = found
    if (!certificate) return `Format ${found.format.name}: there is no template to measure it against.`
    return `Format ${found.format.name}: ${certificate.certified ? 'certified' : 'not certified'}, ` +
      `score ${certificate.score}, ${certificate.checks} checks.`
  }

  turn (found) {
    const { make } = untemplate
    this.raw = make('div', { class: 'text short' })
    this.message = make('div', { class: 'text short' })
    const prompt = found.example.prompt
    const shown = prompt ? [make('p', {}, 'The prompt ends with ', make('code', {}, untemplate.visible(prompt.slice(-120))))] : []
    return [...shown, make('div', { class: 'pair' }, this.raw, this.message)]
  }

  fill (view) {
    const link = new untemplate.Link(() => {})
    const raw = new untemplate.TextView(this.raw, 'The turn.', link)
    const message = new untemplate.TextView(this.message, 'Its message, as JSON.', link)
    link.views.push(raw, message)
    raw.set(view.text, untemplate.marksOf(view), { showsNewlines: true })
    const written = untemplate.jsonText(view.message, untemplate.keyOfPath)
    message.set(written.text, written.marks)
  }

  certificate (certificate) {
    const words = { yes: ['yes', 'yes'], no: ['no', ''], failed: ['yes', 'no'], 'cannot say': ['cannot say', ''] }
    const rows = Object.entries(certificate.capabilities).map(([name, value]) => [name, ...words[value]])
    return this.table(['ability', 'the template can write it', 'it parses back'], rows, row => row[2] === 'no' ? 'bad' : '')
  }

  lint (remarks) {
    const { make, visible } = untemplate
    if (!remarks.length) return make('p', { class: 'good' }, 'Nothing to remark.')
    return make('ul', {}, ...remarks.map(remark => make('li', {},
      make('strong', { class: remark.level === 'error' ? 'bad' : '' }, remark.level), ` ${remark.about}: ${visible(remark.text)} `,
      make('code', {}, visible(remark.output)))))
  }

  covered (lines) {
    return lines.map(({ line, rendered, text }) => `${rendered ? ' ' : '!'} ${String(line).padStart(4)}  ${text}`).join('\n')
  }

  found (analysis) {
    const { result } = analysis
    const rows = [['reasoning', result.reasoning], ['content', result.content], ['calls', result.variant || 'none'], ['arguments', result.arguments || 'none']]
    for (const [name, text] of Object.entries(result.markers)) rows.push([name, JSON.stringify(text)])
    return this.table(['part', 'found'], rows)
  }

  choice (selection) {
    const rows = selection.tried.map(tried => [tried.name, tried.source, tried.score === null ? '' : String(tried.score), tried.remark])
    return this.table(['tried', 'from', 'score', 'remark'], rows)
  }

  table (heads, rows, classOf = () => '') {
    const { make, visible } = untemplate
    return make('table', {}, make('tr', {}, ...heads.map(head => make('th', { scope: 'col' }, head))),
      ...rows.map(row => make('tr', { class: classOf(row) }, ...row.map(cell => make('td', { class: 'mono' }, visible(String(cell)))))))
  }

  // A long text that is laid out when it is opened.
  long (title, text) {
    const { make } = untemplate
    const box = make('div', { class: 'text short' })
    const details = make('details', {}, make('summary', {}, title), box)
    details.addEventListener('toggle', () => {
      if (details.open && !box.children.length) new untemplate.TextView(box, title).set(text, [])
    })
    return details
  }
}
