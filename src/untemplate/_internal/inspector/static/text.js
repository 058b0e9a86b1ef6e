'use strict'
// Shows text of any length: only the rows on screen are in the document. Everything from a model is text, never markup.

const untemplate = {}

untemplate.KINDS = ['reasoning', 'content', 'name', 'id', 'arguments', 'markup', 'dropped']

// Makes an element. `children` are elements or strings.
untemplate.make = function (tag, attributes, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'class') element.className = value
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value)
  }
  element.append(...children)
  return element
}

// Lets the browser react before more work is done.
untemplate.pause = () => new Promise(resolve => setTimeout(resolve))

untemplate.byId = id => document.getElementById(id)

// Scripts whose letters a joiner joins or keeps apart.
const JOINED = /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]/u
const PICTURE = /\p{Extended_Pictographic}/u

// True if the invisible character at a place is a part of the picture or the word around it.
function belongs (text, at) {
  const before = /[^\ufe0f]\ufe0f?$/u.exec(text.slice(Math.max(at - 4, 0), at).replace(/[\u{1f3fb}-\u{1f3ff}]$/u, ''))
  const first = before ? before[0].replace('\ufe0f', '') : ''
  const code = text.charCodeAt(at)
  if (code === 0xfe0e || code === 0xfe0f) return PICTURE.test(first) || /[0-9#*]/.test(first)
  const next = at + 1 < text.length ? String.fromCodePoint(text.codePointAt(at + 1)) : ''
  if (code === 0x200d && PICTURE.test(first) && PICTURE.test(next)) return true
  return (code === 0x200c || code === 0x200d) && JOINED.test(first) && JOINED.test(next)
}

// Returns one visible character for each code unit that has no picture of its own, or that could hide or turn others.
untemplate.visible = function (text) {
  return text.replace(/[\u0000-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, (c, at) => {
    const code = c.charCodeAt(0)
    if (code === 9) return '→'
    if (code < 32) return String.fromCharCode(0x2400 + code)
    if (code === 127) return '␡'
    if (code === 0xa0) return ' '
    return belongs(text, at) ? c : '�'
  })
}

// True if a character takes two columns.
function isWide (code) {
  return code >= 0x1100 && (code <= 0x115f || (code >= 0x2e80 && code <= 0xa4cf) || (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd))
}

// Returns the start of every row of a text with so many columns.
function rowStarts (text, columns) {
  const starts = [0]
  let used = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 10) {
      starts.push(i + 1)
      used = 0
      continue
    }
    let size = 1
    let pair = false
    if (code >= 0x1100) {
      pair = code >= 0xd800 && code < 0xdc00 && i + 1 < text.length
      size = isWide(pair ? text.codePointAt(i) : code) ? 2 : 1
    }
    if (used + size > columns) {
      starts.push(i)
      used = 0
    }
    used += size
    if (pair) i++
  }
  return starts
}

// Returns the index of the last item that is not after a value; items are sorted by `key`.
untemplate.lastAt = function (items, value, key) {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (key(items[middle]) <= value) low = middle + 1
    else high = middle
  }
  return low - 1
}

// A text with marked parts. A mark is {start, end, kind, key, note}; marks are sorted and do not overlap. A key joins
// marks of several texts: pointing at one of them shows all.
untemplate.TextView = class {
  constructor (element, label, link) {
    this.element = element
    this.link = link
    this.text = ''
    this.marks = []
    this.cuts = []
    this.notes = []
    this.limits = null
    this.currentMark = -1
    this.starts = [0]
    this.sheet = untemplate.make('div', { class: 'sheet' })
    element.replaceChildren(this.sheet)
    element.tabIndex = 0
    element.setAttribute('role', 'group')
    element.setAttribute('aria-label', label)
    element.addEventListener('scroll', () => this.draw(), { passive: true })
    if (link) this.listen()
    new ResizeObserver(() => this.layOut()).observe(element)
  }

  listen () {
    const keyOf = event => event.target.dataset && event.target.dataset.key
    this.element.addEventListener('pointerover', event => this.link.point(keyOf(event), this, event.target.dataset.mark))
    this.element.addEventListener('pointerleave', () => this.link.point(undefined, this))
    this.element.addEventListener('click', event => {
      if (keyOf(event)) this.select(Number(event.target.dataset.mark))
    })
    this.element.addEventListener('keydown', event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
      if (!step || !this.marks.length || event.altKey || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      this.select(Math.min(Math.max(this.currentMark + step, 0), this.marks.length - 1))
    })
  }

  // Makes a mark the current one: it comes into sight, here and in the other texts.
  select (index) {
    this.currentMark = index
    const mark = this.marks[index]
    this.show(mark.start)
    this.link.point(mark.key, this, index)
    this.link.reveal(mark.key, this)
  }

  // Shows a text. `extra.at` is a place that comes into sight.
  set (text, marks, extra = {}) {
    const same = text === this.text
    this.text = text
    this.marks = marks
    this.cuts = extra.cuts || []
    this.notes = extra.notes || []
    this.limits = extra.limits || null
    this.showsNewlines = extra.showsNewlines || false
    this.currentMark = -1
    this.drawn = false
    if (!same) this.layOut(extra.at)
    else if (extra.at !== undefined) this.show(extra.at)
    else this.draw()
  }

  // Finds the rows of the text, if it or the width has changed.
  layOut (at) {
    const probe = untemplate.make('span', { class: 'row' }, '0'.repeat(64))
    this.sheet.append(probe)
    const box = probe.getBoundingClientRect()
    probe.remove()
    if (!box.width) return // not on screen
    this.rowHeight = box.height
    const columns = Math.max(Math.floor((this.element.clientWidth - 20) / (box.width / 64)) - 2, 16)
    if (columns !== this.columns || this.laidOut !== this.text) {
      this.columns = columns
      this.laidOut = this.text
      this.starts = rowStarts(this.text, columns)
      this.drawn = false
    }
    const height = this.starts.length * this.rowHeight
    this.sheet.style.height = `${height}px`
    this.element.style.height = `min(${height + 14}px, 26rem)`
    if (at !== undefined) this.show(at)
    else this.draw()
  }

  // Scrolls a place into sight.
  show (place) {
    const row = untemplate.lastAt(this.starts, place, start => start)
    const top = row * this.rowHeight
    const seen = this.element.scrollTop
    if (top < seen || top > seen + this.element.clientHeight - 2 * this.rowHeight) {
      this.element.scrollTop = Math.max(top - this.element.clientHeight / 3, 0)
    }
    this.draw()
  }

  // Draws the rows on screen, if they are others than before or what they show has changed.
  draw () {
    if (!this.rowHeight || this.laidOut !== this.text) return
    const first = Math.max(Math.floor(this.element.scrollTop / this.rowHeight) - 4, 0)
    const last = Math.min(first + Math.ceil(this.element.clientHeight / this.rowHeight) + 8, this.starts.length)
    if (this.drawn && first === this.first && last === this.last) return
    this.drawn = true
    this.first = first
    this.last = last
    const rows = []
    for (let row = first; row < last; row++) rows.push(this.row(row))
    this.sheet.replaceChildren(...rows)
  }

  row (row) {
    const start = this.starts[row]
    const end = row + 1 < this.starts.length ? this.starts[row + 1] : this.text.length
    const element = untemplate.make('div', { class: 'row' })
    element.style.top = `${row * this.rowHeight}px`
    let mark = Math.max(untemplate.lastAt(this.marks, start, m => m.start), 0)
    let cut = untemplate.lastAt(this.cuts, start - 1, c => c) + 1
    let at = start
    while (at < end) {
      while (mark < this.marks.length && this.marks[mark].end <= at) mark++
      const here = this.marks[mark] && this.marks[mark].start <= at ? this.marks[mark] : null
      let stop = Math.min(end, here ? here.end : this.marks[mark] ? this.marks[mark].start : end)
      while (cut < this.cuts.length && this.cuts[cut] <= at) cut++
      if (cut < this.cuts.length) stop = Math.min(stop, this.cuts[cut])
      for (const border of this.borders(at)) stop = Math.min(stop, border)
      element.append(this.piece(at, stop, here, mark, cut))
      at = stop
    }
    return element
  }

  // Returns the borders after a place at which the looks change, besides those of marks and tokens.
  borders (at) {
    const found = this.limits ? [this.limits.decided, this.limits.received] : []
    for (const note of this.notes) found.push(note.start, note.end)
    return found.filter(border => border > at)
  }

  piece (start, end, mark, index, cut) {
    const text = this.text.slice(start, end)
    const shown = untemplate.visible(text.endsWith('\n') ? text.slice(0, -1) : text)
    const span = untemplate.make('span', {}, shown)
    if (this.showsNewlines && text.endsWith('\n')) span.append(untemplate.make('span', { class: 'end', 'aria-hidden': 'true' }, '↵'))
    const classes = []
    if (mark) {
      classes.push(mark.kind)
      if (mark.special) classes.push('special')
      if (mark.key !== undefined) {
        span.dataset.key = mark.key
        span.dataset.mark = index
        if (this.link && this.link.key === mark.key) classes.push('on')
      }
    }
    if (cut > 0 && this.cuts[cut - 1] === start) classes.push('token')
    if (this.limits && start >= this.limits.received) classes.push('ahead')
    else if (this.limits && start >= this.limits.decided) classes.push('held')
    if (this.notes.some(note => note.start <= start && end <= note.end)) classes.push('noted')
    if (shown.includes('�')) span.title = [...text].map(c => 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')).slice(0, 8).join(' ')
    span.className = classes.join(' ')
    return span
  }

  // Marks the parts on screen that have the current key.
  highlight () {
    for (const span of this.sheet.querySelectorAll('span[data-key]')) {
      span.classList.toggle('on', span.dataset.key === this.link.key)
    }
  }

  reveal (key) {
    const mark = this.marks.find(m => m.key === key)
    if (mark) this.show(mark.start)
  }
}

// Joins texts whose marks have the same keys.
untemplate.Link = class {
  constructor (say) {
    this.views = []
    this.key = undefined
    this.say = say
  }

  point (key, view, index) {
    if (key !== this.key) {
      this.key = key
      for (const each of this.views) each.highlight()
    }
    if (key !== undefined && index !== undefined) this.say(view, view.marks[Number(index)])
  }

  reveal (key, from) {
    for (const view of this.views) if (view !== from) view.reveal(key)
  }
}

// Writes a JSON value with marks for the parts that regions of the output became.
untemplate.jsonText = function (value, kinds) {
  let text = ''
  const marks = []
  const mark = (path, from) => {
    const kind = kinds(path)
    if (kind) marks.push({ start: from, end: text.length, kind: kind[0], key: kind[1] })
  }
  const write = (item, path, indent) => {
    const inner = indent + '  '
    if (Array.isArray(item) || (item && typeof item === 'object')) {
      const entries = Object.entries(item)
      const [open, close] = Array.isArray(item) ? '[]' : '{}'
      if (!entries.length) {
        text += open + close
        return
      }
      text += open
      entries.forEach(([name, child], i) => {
        text += (i ? ',\n' : '\n') + inner + (Array.isArray(item) ? '' : JSON.stringify(name) + ': ')
        write(child, path ? `${path}.${name}` : name, inner)
      })
      text += '\n' + indent + close
      return
    }
    const from = text.length
    text += JSON.stringify(item)
    mark(path, from)
  }
  write(value, '', '')
  return { text, marks }
}
