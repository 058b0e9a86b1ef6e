'use strict'
// Answers the page's requests in this browser: Python runs in a worker, and nothing is sent anywhere.

untemplate.Browser = class {
  constructor () {
    const same = { createScriptURL: url => url }
    this.policy = window.trustedTypes ? window.trustedTypes.createPolicy('untemplate', same) : same
    this.asked = new Map()
    // Milliseconds after which a request is ended, with its worker. Loading does not count.
    this.most = 20000
    this.last = 0
    this.begin()
    if ('serviceWorker' in navigator) {
      navigator.serviceWorker.register(this.policy.createScriptURL('service.js')).catch(() => {}) // later visits are slower
    }
  }

  begin () {
    this.loading = 'Loading Python (about 6 MB, once) …'
    this.worker = new Worker(this.policy.createScriptURL('worker.js'), { type: 'module' })
    this.worker.onmessage = ({ data }) => this.take(data)
    this.worker.onerror = event => this.fail(`The worker does not start: ${event.message || 'this browser is too old'}`)
  }

  take (data) {
    if ('state' in data) {
      this.loading = data.state
      if (this.asked.size) untemplate.byId('status').textContent = this.loading || 'Working …'
      if (!this.loading) for (const one of this.asked.values()) this.watch(one)
      return
    }
    if ('failed' in data) return this.fail(`Python does not start: ${data.failed}`)
    const one = this.asked.get(data.id)
    if (!one) return
    this.asked.delete(data.id)
    clearTimeout(one.timer)
    if ('error' in data) one.reject(new Error(data.error))
    else one.resolve(data.value)
  }

  watch (one) {
    one.timer = setTimeout(() => {
      this.fail(`This took longer than ${this.most / 1000} s, and was ended.`)
      this.worker.terminate()
      this.begin()
    }, this.most)
  }

  fail (problem) {
    const asked = [...this.asked.values()]
    this.asked.clear()
    for (const one of asked) {
      clearTimeout(one.timer)
      one.reject(new Error(problem))
    }
  }

  ask (route, body) {
    if (this.loading) untemplate.byId('status').textContent = this.loading
    return new Promise((resolve, reject) => {
      const one = { resolve, reject }
      this.asked.set(++this.last, one)
      if (!this.loading) this.watch(one)
      this.worker.postMessage({ id: this.last, route, body: JSON.stringify(body) })
    })
  }
}

document.documentElement.classList.add('browser')
untemplate.browser = new untemplate.Browser()
