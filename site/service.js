'use strict'
// Keeps the files of one version of the page, so that later visits load nothing. VERSION and FILES are written by the build.
const VERSION = '/* version */'
const FILES = [/* files */]

self.addEventListener('install', event => {
  event.waitUntil(caches.open(VERSION).then(cache => cache.addAll(FILES)).then(() => self.skipWaiting()))
})

self.addEventListener('activate', event => {
  const others = caches.keys().then(names => names.filter(name => name.startsWith('untemplate-') && name !== VERSION))
  event.waitUntil(others.then(names => Promise.all(names.map(name => caches.delete(name)))).then(() => self.clients.claim()))
})

self.addEventListener('fetch', event => {
  if (event.request.method !== 'GET') return
  event.respondWith(caches.open(VERSION).then(cache => cache.match(event.request, { ignoreSearch: true })).then(found => found || fetch(event.request)))
})
