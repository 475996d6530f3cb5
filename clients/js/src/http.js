// SPDX-License-Identifier: Apache-2.0
import { BurrowError, errorOf, invalid } from './error.js'

const LINE_CHARACTERS = 64 << 20

function rootOf(url) {
  let parsed
  try {
    parsed = new URL(url)
  } catch {
    throw invalid(`url: '${url}' is not an address; say one like http://127.0.0.1:4747`, 'url')
  }
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
    throw invalid(`url: '${url}' begins neither with http:// nor with https://`, 'url')
  return parsed.origin + parsed.pathname.replace(/\/+$/, '').replace(/\/api\/v1$/, '') + '/api/v1'
}

function queryOf(query) {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined)
  return pairs.length ? '?' + pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&') : ''
}

/** A path of the API, whose parts are anything: path`/sandboxes/${id}/files` */
export function path(texts, ...parts) {
  return texts.reduce((whole, text, i) => whole + partOf(parts[i - 1]) + text)
}

function partOf(part) {
  if (typeof part !== 'string' || part === '' || part === '.' || part === '..')
    throw invalid(`'${part}' is not an id or a name`)
  return encodeURIComponent(part)
}

/** Requests to one server with one key. */
export class Http {
  #root
  #key
  #fetch

  constructor({ url, apiKey, fetch } = {}) {
    const environment = globalThis.process?.env ?? {}
    this.#root = rootOf(url ?? environment.BURROW_URL ?? 'http://127.0.0.1:4747')
    this.#key = apiKey ?? environment.BURROW_API_KEY
    this.#fetch = fetch ?? globalThis.fetch
    if (!this.#key) throw invalid('apiKey: there is none; give it, or set BURROW_API_KEY', 'apiKey')
  }

  /** The Response of a request that was not refused. */
  async send(method, path, { query, json, body, headers, signal } = {}) {
    signal?.throwIfAborted()
    const all = { authorization: `Bearer ${this.#key}`, ...headers }
    if (json !== undefined) all['content-type'] = 'application/json'
    else if (body !== undefined) all['content-type'] = 'application/octet-stream'
    let response
    try {
      response = await this.#fetch(this.#root + path + queryOf(query), {
        method,
        headers: all,
        body: json === undefined ? body : JSON.stringify(json),
        signal,
        ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
      })
    } catch (problem) {
      if (signal?.aborted) throw signal.reason
      const why = problem?.cause?.message || problem?.message
      throw new BurrowError(`no answer from ${this.#root}: ${why}`, {
        code: 'unreachable',
        remedy: 'see whether the server runs there: burrow serve',
        cause: problem,
      })
    }
    if (!response.ok) throw await errorOf(response)
    return response
  }

  async json(method, path, options) {
    const response = await this.send(method, path, options)
    return response.status === 204 ? undefined : response.json()
  }

  /** Items of all pages of a list. */
  async *pages(path, { query, signal } = {}) {
    let cursor
    do {
      const page = await this.json('GET', path, { query: { ...query, cursor }, signal })
      yield* page.items
      cursor = page.nextCursor
    } while (cursor)
  }

  /** Records of a streamed answer: {event, data}. */
  async *records(method, path, options = {}) {
    const response = await this.send(method, path, { ...options, headers: { ...options.headers, accept: 'application/x-ndjson' } })
    try {
      for await (const line of linesOf(response.body)) if (line.trim()) yield JSON.parse(line)
    } catch (problem) {
      if (options.signal?.aborted) throw options.signal.reason
      if (problem instanceof BurrowError) throw problem
      throw new BurrowError(`the stream broke off: ${problem?.message}`, { code: 'broken_stream', cause: problem })
    }
  }
}

async function* linesOf(body) {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop()
    yield* lines
    if (rest.length > LINE_CHARACTERS) throw new BurrowError('the server sent a line without an end', { code: 'broken_stream' })
  }
  if (rest) yield rest
}
