// SPDX-License-Identifier: Apache-2.0
// The interface of Agentium's SandboxAgent and of its CloudSandbox, over a sandbox of burrow.
import { posix } from 'node:path'
import { Burrow } from './client.js'
import { BurrowError, invalid } from './error.js'
import { tarRead, tarWrite } from './tar.js'

const DEFAULT_SECONDS = 30
const CLONE_SECONDS = 300
const IDLE = '1h'
/* What the kernel takes as one argument is 128 KiB; longer code goes by way of a file, which the interpreter removes. */
const ARGUMENT_BYTES = 100_000

const interpreters = {
  node: {
    short: (code) => ['node', `--eval=${code}`],
    long: (file) => ['node', `--eval=const { readFileSync, unlinkSync } = require('fs'); const code = readFileSync('${file}', 'utf8'); unlinkSync('${file}'); require('vm').runInThisContext(code, '[eval]')`],
  },
  python: {
    short: (code) => ['python3', '-c', code],
    long: (file) => ['python3', '-c', `import os\nwith open('${file}', encoding='utf8', newline='') as f: code = f.read()\nos.unlink('${file}')\ndel os, f\nexec(compile(code, '<string>', 'exec'))`],
  },
  shell: {
    short: (code) => ['sh', '-c', code],
    long: (file) => ['sh', '-c', `. ${file}`],
  },
}

function textOf(value, field) {
  if (typeof value !== 'string') throw invalid(`${field}: a text is needed, not ${value === null ? 'null' : typeof value}`, field)
  if (value.includes('\0')) throw invalid(`${field}: has a NUL character`, field)
  return value
}

function millisecondsOf(seconds = DEFAULT_SECONDS) {
  if (typeof seconds !== 'number' || !(seconds >= 0) || seconds > 1e9)
    throw invalid(`timeoutSeconds: '${seconds}' is not a number of seconds`, 'timeoutSeconds')
  return Math.max(1, Math.round(seconds * 1000)) // none at all is "at once", as it is for the vendor
}

function bytesOf(contents, encoding = 'utf8') {
  if (typeof contents !== 'string') throw invalid('contents: a text is needed', 'contents')
  if (encoding === 'utf8') return Buffer.from(contents, 'utf8')
  if (encoding !== 'base64') throw invalid(`encoding: there is no '${encoding}'; there are utf8 and base64`, 'encoding')
  const plain = contents.replace(/\s+/g, '')
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(plain) || plain.replace(/=+$/, '').length % 4 === 1)
    throw invalid('contents: is not base64', 'contents')
  return Buffer.from(plain, 'base64')
}

/** Below the root whatever it says: '..' that leads out is refused, an absolute path begins at the root. */
export function below(root, path) {
  textOf(path, 'path')
  const rest = path === root || path.startsWith(`${root}/`) ? path.slice(root.length) : path
  const whole = posix.normalize(`./${rest}`)
  if (whole === '..' || whole.startsWith('../')) throw invalid(`path: '${path}' leads out of the workspace`, 'path')
  return posix.join(root, whole)
}

/** Clones need a way to where they come from, and to nowhere else. */
export function networkFor(clones = []) {
  const hosts = clones.map(({ repo }) => /^(?:[a-z+]+:\/\/(?:[^/@]*@)?([^/:]+)|(?:[\w.-]+@)([\w.-]+):)/i.exec(String(repo))).filter(Boolean)
  return hosts.length ? { enabled: true, allow: [...new Set(hosts.map((host) => host[1] ?? host[2]))] } : undefined
}

function entryOf(file) {
  if (typeof file !== 'object' || file === null) throw invalid('files: each is {path, contents, encoding?}', 'files')
  const path = below('/', file.path).slice(1)
  if (path === '') throw invalid('files: a file without a name', 'files')
  const mode = Number.isInteger(file.mode) ? file.mode & 0o777 : 0o644
  return { type: 'file', path, mode, content: bytesOf(file.contents, file.encoding) }
}

function linkOf({ path, target }) {
  return { type: 'link', path: below('/', path).slice(1), mode: 0o777, target: textOf(target, 'target') }
}

class Workspace {
  #burrow
  #config
  #defaultLanguage
  #sandbox
  #starting
  #files
  #links = []
  #env
  #clones

  constructor(config, defaultLanguage) {
    this.#config = config
    this.#burrow = new Burrow(config)
    this.#defaultLanguage = defaultLanguage
    this.#files = config.workspace?.files ?? []
    this.#clones = config.workspace?.gitClones ?? []
    this.#env = { ...config.env, ...config.workspace?.env }
  }

  get ready() {
    return this.#sandbox !== undefined
  }

  /** Burrow's own view of it, for what this interface has not; undefined while there is none. */
  get sandbox() {
    return this.#sandbox
  }

  async start({ signal } = {}) {
    if (this.#sandbox) return
    this.#starting ??= this.#make(signal).finally(() => { this.#starting = undefined })
    await this.#starting
  }

  async #make(signal) {
    const entries = [...this.#files.map(entryOf), ...this.#links.map(linkOf)]
    const { runtime, snapshot, limits, name, labels, idleTimeoutMs = IDLE, network = networkFor(this.#clones) } = this.#config
    const settings = { runtime, snapshot, limits, name, labels, idleTimeoutMs, network, env: this.#env }
    const sandbox = await this.#burrow.sandboxes.create(settings, { signal })
    try {
      if (entries.length) await sandbox.files.writeArchive(sandbox.info.directory, tarWrite(entries), { signal })
      for (const clone of this.#clones) await this.#clone(sandbox, clone, signal)
    } catch (problem) {
      await sandbox.kill().catch(() => {})
      throw problem
    }
    this.#sandbox = sandbox
  }

  async #clone(sandbox, { repo, path, ref }, signal) {
    const place = below(sandbox.info.directory, path)
    const git = async (...words) => {
      const options = { env: { GIT_TERMINAL_PROMPT: '0' }, timeoutMs: (this.#config.cloneTimeoutSeconds ?? CLONE_SECONDS) * 1000, signal }
      const done = await sandbox.exec(['git', ...words], options)
      if (done.exitCode === 0) return
      const why = (done.stderr.trim() || done.error || `exit code ${done.exitCode}`).slice(-2000)
      throw new BurrowError(`gitClones: '${repo}' could not be cloned: ${why}`, { code: 'clone_failed', field: 'gitClones' })
    }
    await git('clone', '--quiet', '--', textOf(repo, 'repo'), place)
    if (ref === undefined) return
    if (textOf(ref, 'ref').startsWith('-')) throw invalid(`ref: '${ref}' is not a commit`, 'ref')
    await git('-C', place, 'checkout', '--quiet', ref, '--')
  }

  #living() {
    if (this.#sandbox) return this.#sandbox
    throw new BurrowError('the sandbox is not started', { code: 'not_started', remedy: 'call start() first' })
  }

  async run(code, { language = this.#defaultLanguage, timeoutSeconds, env, signal } = {}) {
    const sandbox = this.#living()
    const interpreter = Object.hasOwn(interpreters, language) ? interpreters[language] : undefined
    if (!interpreter) throw invalid(`language: there is no '${language}'; there are ${Object.keys(interpreters).join(', ')}`, 'language')
    const options = { env, timeoutMs: millisecondsOf(timeoutSeconds), signal }
    const isLong = Buffer.byteLength(textOf(code, 'code')) > ARGUMENT_BYTES
    const file = `/tmp/.burrow-code-${globalThis.crypto.randomUUID()}`
    if (isLong) options.files = [{ path: file, content: code }]
    const done = await sandbox.exec(isLong ? interpreter.long(file) : interpreter.short(code), options)
    if (isLong && language === 'shell') await sandbox.files.remove(file).catch(() => {})
    const output = done.stdout + done.stderr + (done.cause === 'not_found' ? `${done.error}\n` : '')
    return { output, exitCode: done.exitCode, ...(done.timedOut ? { timedOut: true } : {}) }
  }

  async shell(command, options) {
    return this.run(command, { ...options, language: 'shell' })
  }

  async writeFile(path, contents, encoding, { signal } = {}) {
    const sandbox = this.#living()
    await sandbox.files.write(below(sandbox.info.directory, path), bytesOf(contents, encoding), { signal })
  }

  async readFile(path, encoding = 'utf8', { signal } = {}) {
    const sandbox = this.#living()
    const whole = below(sandbox.info.directory, path)
    bytesOf('', encoding)
    try {
      return Buffer.from(await sandbox.files.readBytes(whole, { signal })).toString(encoding)
    } catch (problem) {
      if (problem.field === 'path' && (problem.code === 'not_found' || problem.code === 'conflict')) return null
      throw problem
    }
  }

  /** Files, links and variables, as one value that JSON takes. */
  async snapshot({ signal } = {}) {
    const sandbox = this.#living()
    const files = new Map()
    const links = []
    for (const { type, path, mode, content, target } of tarRead(await sandbox.files.readArchive(sandbox.info.directory, { signal }))) {
      if (type === 'link') links.push({ path, target })
      else if (type === 'file') files.set(path, { path, contents: content.toString('base64'), encoding: 'base64', mode: mode & 0o777 })
      else if (files.has(target)) files.set(path, { ...files.get(target), path })
    }
    return { takenAt: Date.now(), files: [...files.values()], env: { ...this.#env }, ...(links.length ? { links } : {}) }
  }

  /** A workspace with what the snapshot has, instead of the one there is. Clones are in it, and not made again. */
  async resume(snapshot, { signal } = {}) {
    if (!Array.isArray(snapshot?.files)) throw invalid('snapshot: is not one: it has no list of files', 'snapshot')
    const links = snapshot.links ?? []
    snapshot.files.forEach(entryOf)
    links.forEach(linkOf)
    await this.close()
    this.#files = snapshot.files
    this.#links = links
    this.#env = { ...snapshot.env }
    this.#clones = []
    await this.start({ signal })
  }

  async close({ signal } = {}) {
    await this.#starting?.catch(() => {})
    const sandbox = this.#sandbox
    this.#sandbox = undefined
    await sandbox?.kill({ signal })
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.close()
  }
}

/** A CloudSandbox: what Agentium's own class takes as `remote`. */
export class BurrowSandbox extends Workspace {
  providerId = 'burrow'

  constructor(config = {}) {
    super(config, 'python')
  }
}

/** The interface of Agentium's SandboxAgent; its workspace is a sandbox of burrow. */
export class SandboxAgent extends Workspace {
  kind = 'sandbox-agent'

  constructor(config = {}) {
    super(config, 'node')
  }
}
