// SPDX-License-Identifier: Apache-2.0
import { invalid } from './error.js'
import { Http, path } from './http.js'
import { Sandbox } from './sandbox.js'

/** A burrow server. */
export class Burrow {
  #http

  /** url and apiKey default to BURROW_URL and BURROW_API_KEY. */
  constructor(options) {
    this.#http = new Http(options)
    this.sandboxes = new Sandboxes(this.#http)
    this.snapshots = new Snapshots(this.#http)
  }

  /** Any other operation of /api/v1: burrow.request('GET', '/quotas') */
  request(method, path, options) {
    if (!path.startsWith('/')) throw invalid(`path: '${path}' does not begin with '/'`, 'path')
    return this.#http.json(method, path, options)
  }
}

class Sandboxes {
  #http

  constructor(http) {
    this.#http = http
  }

  async create(settings = {}, { signal } = {}) {
    return new Sandbox(this.#http, await this.#http.json('POST', '/sandboxes', { json: settings, signal }))
  }

  async get(idOrName, { signal } = {}) {
    return new Sandbox(this.#http, await this.#http.json('GET', path`/sandboxes/${idOrName}`, { signal }))
  }

  /** All that match, page by page as they are asked for. */
  async *list({ signal, ...query } = {}) {
    for await (const info of this.#http.pages('/sandboxes', { query, signal })) yield new Sandbox(this.#http, info)
  }

  /** Whether there was one. */
  async kill(idOrName, { signal } = {}) {
    return endedBy(this.#http.json('DELETE', path`/sandboxes/${idOrName}`, { signal }))
  }
}

class Snapshots {
  #http

  constructor(http) {
    this.#http = http
  }

  get(snapshot, { signal } = {}) {
    return this.#http.json('GET', path`/snapshots/${snapshot}`, { signal })
  }

  list({ signal, ...query } = {}) {
    return this.#http.pages('/snapshots', { query, signal })
  }

  /** Whether there was one. */
  delete(snapshot, { signal } = {}) {
    return endedBy(this.#http.json('DELETE', path`/snapshots/${snapshot}`, { signal }))
  }
}

async function endedBy(request) {
  try {
    await request
    return true
  } catch (problem) {
    if (problem.code === 'not_found') return false
    throw problem
  }
}
