// SPDX-License-Identifier: Apache-2.0
import { BurrowError, invalid } from './error.js'
import { path } from './http.js'

const MAX_OUTPUT_BYTES = 16 << 20

export function commandOf(command) {
  if (typeof command === 'string') return { script: command }
  if (Array.isArray(command) && command.length && command.every((word) => typeof word === 'string')) return { command }
  throw invalid('command: neither a text for the shell nor a list of texts, which no shell reads', 'command')
}

function inputOf(stdin) {
  if (stdin === undefined) return {}
  if (typeof stdin === 'string') return { stdin }
  return { stdinBase64: Buffer.from(stdin).toString('base64') }
}

/** A command that was asked for. It is an async iterator of what happens, once; `await execution.result()` takes all of it. */
export class Execution {
  #http
  #request
  #signal
  #maxOutputBytes
  #isTaken = false

  constructor(http, sandboxId, command, { signal, stdin, maxOutputBytes = MAX_OUTPUT_BYTES, ...options } = {}) {
    this.#http = http
    this.#request = { sandbox: sandboxId, ...commandOf(command), ...inputOf(stdin), ...options }
    this.#signal = signal
    this.#maxOutputBytes = maxOutputBytes
    this.id = undefined
  }

  /** started, stdout and stderr with `bytes` and `text`, exit. Whoever leaves it, or aborts, ends the command. */
  async *[Symbol.asyncIterator]() {
    if (this.#isTaken) throw new BurrowError('an execution can be followed once', { code: 'conflict' })
    this.#isTaken = true
    this.#signal?.throwIfAborted()
    const connection = new AbortController()
    const records = this.#http.records('POST', '/run', { json: this.#request, signal: connection.signal })
    let next = records.next()
    let isOver = false
    try {
      for (;;) {
        const { value, done } = await orAborted(next, this.#signal)
        if (done) break
        const event = this.#read(value)
        isOver = event?.type === 'exit'
        if (!isOver) next = records.next()
        if (event) yield event
        if (isOver) return
      }
      isOver = true
      throw new BurrowError('the stream ended before the command', { code: 'broken_stream' })
    } catch (problem) {
      isOver ||= !this.#signal?.aborted // a refusal, or the server is gone: nothing that could be ended
      throw problem
    } finally {
      if (!isOver) this.#end(next, records)
      else connection.abort()
    }
  }

  #read({ event, data }) {
    if (event === 'started') {
      this.id = data.id
      return { type: 'started', id: data.id }
    }
    if (event === 'stdout' || event === 'stderr') {
      const bytes = Buffer.from(data.text ?? data.textBase64, data.text === undefined ? 'base64' : 'utf8')
      return { type: event, bytes, text: bytes.toString() }
    }
    return event === 'exit' ? { type: 'exit', ...resultOf(data) } : undefined
  }

  /** Ends the command on the server, also where its id is not yet known here; nobody waits for it. */
  #end(next, records) {
    const end = async () => {
      while (this.id === undefined) {
        const { value, done } = await next
        if (done) return
        this.#read(value)
        if (this.id === undefined) next = records.next()
      }
      await this.kill({ force: true })
    }
    end().catch(() => {}).finally(() => next.catch(() => {}).then(() => records.return()).catch(() => {}))
  }

  /** All of it: {exitCode, stdout, stderr, timedOut, …}. A command that fails is a result. */
  async result() {
    const kept = { stdout: [], stderr: [] }
    const left = { stdout: this.#maxOutputBytes, stderr: this.#maxOutputBytes }
    let truncated = false
    for await (const event of this) {
      if (event.type === 'exit') {
        const { type, ...result } = event
        const whole = { stdout: Buffer.concat(kept.stdout), stderr: Buffer.concat(kept.stderr) }
        return { ...result, stdout: whole.stdout.toString(), stderr: whole.stderr.toString(), stdoutBytes: whole.stdout, stderrBytes: whole.stderr, truncated }
      }
      if (!kept[event.type]) continue
      truncated ||= event.bytes.length > left[event.type]
      const part = event.bytes.subarray(0, left[event.type])
      left[event.type] -= part.length
      kept[event.type].push(part)
    }
    throw new BurrowError('the stream ended before the command', { code: 'broken_stream' })
  }

  /** Awaiting the execution itself is awaiting its result. */
  then(resolve, reject) {
    return this.result().then(resolve, reject)
  }

  signal(name, { signal } = {}) {
    return this.#http.json('POST', path`/executions/${this.id}/signal`, { json: { signal: name }, signal })
  }

  kill({ signal, force } = {}) {
    return this.#http.json('DELETE', path`/executions/${this.id}`, { query: { force }, signal })
  }
}

function resultOf(data) {
  return {
    id: data.id,
    exitCode: data.exitCode ?? 1,
    cause: data.cause,
    timedOut: data.cause === 'timeout',
    signal: data.signal,
    error: data.error,
    durationMs: data.durationMs,
    resources: data.resources,
  }
}

/** What comes, or the reason of the signal. */
async function orAborted(promise, signal) {
  if (!signal) return promise
  signal.throwIfAborted()
  let stop
  const aborted = new Promise((_, reject) => {
    stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
