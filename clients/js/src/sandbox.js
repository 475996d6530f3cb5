// SPDX-License-Identifier: Apache-2.0
import { BurrowError } from './error.js'
import { Execution } from './execution.js'
import { path } from './http.js'

/** A sandbox of a server. */
export class Sandbox {
  #http

  /** By Burrow's sandboxes alone. */
  constructor(http, info) {
    this.#http = http
    this.info = info
    this.files = new Files(http, info.id)
    this.network = new Network(http, info.id)
    this.contexts = new Contexts(http, info.id)
  }

  get id() {
    return this.info.id
  }

  get name() {
    return this.info.name
  }

  /** A text is for the shell; a list is program and arguments. Await it for the result, or iterate it for what happens. */
  exec(command, options) {
    return new Execution(this.#http, this.id, command, options)
  }

  /** Code as in a notebook: {stdout, stderr, results, error?, …}. What it defines stays for the next. */
  runCode(code, { signal, ...options } = {}) {
    return this.#http.json('POST', path`/sandboxes/${this.id}/code`, { json: { code, ...options }, signal })
  }

  /** The same as it happens: started, stdout, stderr, result, error, end. */
  async *streamCode(code, { signal, ...options } = {}) {
    const request = { json: { code, ...options }, signal }
    for await (const { event, data } of this.#http.records('POST', path`/sandboxes/${this.id}/code`, request)) yield { ...data, type: event }
  }

  /** Asks the server how it is; `info` has it afterwards too. */
  async refresh({ signal } = {}) {
    this.info = await this.#http.json('GET', path`/sandboxes/${this.id}`, { signal })
    return this.info
  }

  async pause({ signal } = {}) {
    this.info = await this.#http.json('POST', path`/sandboxes/${this.id}/pause`, { signal })
  }

  async resume({ signal } = {}) {
    this.info = await this.#http.json('POST', path`/sandboxes/${this.id}/resume`, { signal })
  }

  async fork(settings = {}, { signal } = {}) {
    return new Sandbox(this.#http, await this.#http.json('POST', path`/sandboxes/${this.id}/fork`, { json: settings, signal }))
  }

  /** Of its files: new sandboxes start from it. */
  snapshot(settings = {}, { signal } = {}) {
    return this.#http.json('POST', path`/sandboxes/${this.id}/snapshots`, { json: settings, signal })
  }

  /** Whether it was still there. */
  async kill({ signal } = {}) {
    try {
      await this.#http.json('DELETE', path`/sandboxes/${this.id}`, { signal })
      return true
    } catch (problem) {
      if (problem.code === 'not_found') return false
      throw problem
    }
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.kill()
  }
}

/** Files of a sandbox. Paths are absolute, or from its directory on. */
class Files {
  #http
  #base

  constructor(http, id) {
    this.#http = http
    this.#base = path`/sandboxes/${id}/files`
  }

  async readBytes(path, { signal } = {}) {
    const response = await this.#http.send('GET', this.#base, { query: { path }, signal })
    return new Uint8Array(await response.arrayBuffer())
  }

  async read(path, options) {
    return new TextDecoder().decode(await this.readBytes(path, options))
  }

  /** As a ReadableStream of bytes, for files that are large. */
  async stream(path, { signal } = {}) {
    return (await this.#http.send('GET', this.#base, { query: { path }, signal })).body
  }

  /** All or nothing; a text, bytes, or a ReadableStream. Directories above it are made. */
  write(path, content, { signal, mode } = {}) {
    return this.#http.json('PUT', this.#base, { query: { path, mode, createParents: true }, body: content, signal })
  }

  async *list(path = '.', { signal, recursive, ...query } = {}) {
    yield* this.#http.pages(this.#base + '/list', { query: { path, recursive, ...query }, signal })
  }

  stat(path, { signal } = {}) {
    return this.#http.json('GET', this.#base + '/stat', { query: { path }, signal })
  }

  async exists(path, options) {
    try {
      await this.stat(path, options)
      return true
    } catch (problem) {
      if (problem instanceof BurrowError && problem.code === 'not_found' && problem.field === 'path') return false
      throw problem
    }
  }

  makeDirectory(path, { signal } = {}) {
    return this.#http.json('POST', this.#base + '/mkdir', { json: { path, createParents: true }, signal })
  }

  async remove(path, { signal, recursive } = {}) {
    await this.#http.json('DELETE', this.#base, { query: { path, recursive }, signal })
  }

  /** A directory as a tar. */
  async readArchive(path = '.', { signal } = {}) {
    const response = await this.#http.send('GET', this.#base + '/archive', { query: { path, format: 'tar' }, signal })
    return new Uint8Array(await response.arrayBuffer())
  }

  async writeArchive(path, tar, { signal } = {}) {
    await this.#http.json('PUT', this.#base + '/archive', { query: { path }, body: tar, signal })
  }
}

/** Interpreters that keep what code defines. Each language has one without being asked; these are more of them, or tell of all. */
class Contexts {
  #http
  #base

  constructor(http, id) {
    this.#http = http
    this.#base = path`/sandboxes/${id}/contexts`
  }

  /** {language, directory, user}: its `id` is for runCode. */
  create(settings = {}, { signal } = {}) {
    return this.#http.json('POST', this.#base, { json: settings, signal })
  }

  async *list({ signal } = {}) {
    yield* this.#http.pages(this.#base, { signal })
  }

  get(id, { signal } = {}) {
    return this.#http.json('GET', this.#base + path`/${id}`, { signal })
  }

  /** Ends what runs in it; what was defined stays. */
  async interrupt(id, { signal } = {}) {
    await this.#http.json('POST', this.#base + path`/${id}/interrupt`, { signal })
  }

  /** A new interpreter under the same id. */
  async restart(id, { signal } = {}) {
    await this.#http.json('POST', this.#base + path`/${id}/restart`, { signal })
  }

  async remove(id, { signal } = {}) {
    await this.#http.json('DELETE', this.#base + path`/${id}`, { signal })
  }
}

/** Where a sandbox may connect to. */
class Network {
  #http
  #base

  constructor(http, id) {
    this.#http = http
    this.#base = path`/sandboxes/${id}/network`
  }

  get({ signal } = {}) {
    return this.#http.json('GET', this.#base, { signal })
  }

  /** All of the policy anew. */
  set(policy, { signal } = {}) {
    return this.#http.json('PUT', this.#base, { json: policy, signal })
  }

  /** What is named of it. */
  change(policy, { signal } = {}) {
    return this.#http.json('PATCH', this.#base, { json: policy, signal })
  }

  /** Whether it may, and by which rule. */
  why(host, port, { signal, protocol } = {}) {
    return this.#http.json('GET', this.#base + '/why', { query: { host, port, protocol }, signal })
  }
}
